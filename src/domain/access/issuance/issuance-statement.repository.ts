import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import { fragment, joined, type SqlFragment } from '#platform/database/statements/sql.js';
import {
  CONDITIONS_OF_REACHED,
  denialOfChange,
  DENIALS_OF_REACH,
  joinReached,
} from '../reach/reach.repository.js';
import {
  lockInOrder,
  rowsBehind,
  type Requirements,
  type RowBehind,
  type RowLocks,
} from './lock-order.repository.js';

/**
 * The reasons why no credential is issued. `gone`: a row that the credential depends on is missing,
 * has expired, or belongs to another user. `changed`: a rule changed while the statement ran, so
 * that a second statement must decide. `withheld`: a condition that only this kind of credential
 * has (`issuedIf`) does not hold.
 */
export type Denial =
  | 'gone'
  | 'account_inactive'
  | 'domain_not_owned'
  | 'not_assigned'
  | 'condition_unmet'
  | 'role_required'
  | 'changed'
  | 'too_many_principals'
  | 'withheld';

/**
 * The SQL by which one kind of credential (such as SSH certificates) is issued. It consists of
 * constants, so that no value of a request can become SQL.
 *
 * The SQL uses these aliases: `k` is a request with its columns, `a` its user, `s` its session, `g`
 * its grant. `i` is a request after the decision, with its columns and with `of_user` (the id of
 * its user), `org_id` and `user_email`. If `requires` names the client, the session or the grant,
 * `i` also has its columns: `client_name`, `client_org_id`, `of_session`, `session_ends`,
 * `session_key` (the security key that opened the session) and `grant_ends`. For a kind with a
 * `reach`, `r` is the target.
 */
export interface IssuanceSql {
  readonly requires: Requirements;
  /**
   * The columns of a request, with their PostgreSQL types. `user_id`, `client_id`, `session_id` and
   * `grant_id` are always among them.
   */
  readonly columns: SqlFragment;
  /**
   * A condition on the request `k`, its user `a`, its session `s` and its grant `g`. If the
   * condition holds, the request is denied with `gone`.
   */
  readonly goneIf?: SqlFragment;
  /**
   * Further reasons for a denial, as WHEN branches of the CASE expression that computes the reason.
   * They read the request, its user, session, grant and target (`k`, `a`, `s`, `g` and `r`).
   */
  readonly denials?: SqlFragment;
  /**
   * Further columns of `i`, the request after the decision. Their SQL reads `k`, `a`, `s` and `g`.
   */
  readonly computed?: SqlFragment;
  /**
   * A condition on `i`, the request after the decision. If it does not hold, the request is denied
   * with `withheld`.
   */
  readonly issuedIf?: (locks: RowLocks) => SqlFragment | undefined;
  /**
   * A column of `i` that is computed only for issued credentials. It is for example a serial from a
   * sequence, so that a denied request uses up no serial.
   */
  readonly drawn?: { readonly value: SqlFragment; readonly column: SqlFragment };
  /** Inserts the issued credentials into their table: `INSERT … SELECT …` from {@link ISSUED}. */
  readonly written: SqlFragment;
  /** Inserts rows about the issued credentials into another table. */
  readonly alsoWritten?: SqlFragment;
  /**
   * Inserts the audit events of the issued credentials; undefined for a kind of credential that is
   * not audited.
   */
  readonly audited: SqlFragment | undefined;
  /**
   * The columns of `i`, the request after the decision, that the statement returns to the caller.
   */
  readonly returned?: SqlFragment;
}

const NOTHING = fragment``;

/**
 * Returns the statement that issues one kind of credential. The statement locks the rows that the
 * requests depend on, decides about each request, and inserts the issued credentials with their
 * audit events. One text serves a single request and a batch; only a batch skips locked rows (`SKIP
 * LOCKED`). `OFFSET 0` keeps PostgreSQL from merging the subquery into the outer query, so that
 * each column is computed only once.
 */
export function issuanceStatement(kind: IssuanceSql, locks: RowLocks): SqlFragment {
  const { requires, columns, computed, drawn, written, alsoWritten, audited, returned } = kind;
  const behind = rowsBehind(requires);
  const { reach } = requires;
  const condition = kind.issuedIf?.(locks);
  // If the condition is NULL, nothing is issued. The column must then be false and not NULL,
  // because the column is a part of the result.
  const isIssued = condition
    ? fragment`i.denial IS NULL AND coalesce((${condition}), false)`
    : fragment`i.denial IS NULL`;
  return fragment`
    WITH asked AS MATERIALIZED (
      SELECT k.*, ${userOf(requires)} AS of_user, ${sessionOf(requires)} AS of_session
      FROM jsonb_to_recordset($1::jsonb) AS k (
        n int, user_id uuid, client_id text, session_id uuid, grant_id bytea, ${columns})
      ${ownerJoin(requires)}
      WHERE ${CONFIRMED}
    ), ${lockInOrder(behind, reach, locks)}, decided AS MATERIALIZED (
      SELECT i.*, ${isIssued} AS is_issued
        ${drawn ? fragment`, CASE WHEN ${isIssued} THEN ${drawn.value} END AS ${drawn.column}` : NOTHING}
      FROM (
        SELECT k.*, ${joined(
          behind.map((row) => row.columns),
          ', ',
        )} ${columnList(computed)}, ${denialOf(kind, behind)} AS denial
          ${reach ? fragment`, ${CONDITIONS_OF_REACHED} AS conditions` : NOTHING}
        FROM asked k ${joined(
          behind.map(({ join }) => join),
          ' ',
        )} ${reach ? joinReached(reach) : NOTHING} OFFSET 0
      ) i
    ), written AS (${written})
    ${alsoWritten ? fragment`, also_written AS (${alsoWritten})` : NOTHING}
    ${audited ? fragment`, audited AS (${audited})` : NOTHING}
    SELECT i.n, CASE WHEN NOT i.is_issued THEN coalesce(i.denial, 'withheld') END AS denial
      ${reach ? fragment`, CASE WHEN i.denial = 'condition_unmet' THEN i.conditions END AS conditions` : NOTHING}
      ${columnList(returned)}
    FROM decided i`;
}

/**
 * Returns the SQL of the reason of a denial; NULL if the request is allowed. This one expression
 * checks, for every kind of credential, the same rules: the user is active; the organization owns
 * the e-mail domain; no row has expired; the target admits the user.
 */
function denialOf(
  { goneIf, requires, denials }: IssuanceSql,
  behind: readonly RowBehind[],
): SqlFragment {
  const { reach } = requires;
  const isGone = joined([...behind.map((row) => row.isGone), ...(goneIf ? [goneIf] : [])], ' OR ');
  return fragment`CASE WHEN ${isGone} THEN 'gone' WHEN NOT a.active THEN 'account_inactive'
    WHEN NOT ${isOwn(requires)} THEN 'domain_not_owned'
    ${reach ? fragment`${denialOfChange(reach)} ${DENIALS_OF_REACH[reach]}` : NOTHING} ${denials ?? NOTHING} END`;
}

/**
 * Returns the SQL condition that the organization of the user owns the domain of the user's e-mail
 * address. The loss of a domain deletes the sessions of its users, so a statement with a session
 * notices the loss by the missing session. A statement without a session reads the owner of the
 * domain again after it has locked the user.
 */
function isOwn({ session }: Requirements): SqlFragment {
  return session ? fragment`a.is_own` : fragment`is_own_address_now(a.org_id, a.email)`;
}

/**
 * The SQL clause by which the INSERT of a kind of credential selects the requests that the
 * statement allows. Each is a row of `decided`, under the alias `i`.
 */
export const ISSUED = fragment`FROM decided i WHERE i.is_issued`;

function userOf({ user }: Requirements): SqlFragment {
  return user === 'of the request' ? fragment`k.user_id` : fragment`o.owner_id`;
}

function ownerJoin({ user }: Requirements): SqlFragment {
  return user === 'of the request'
    ? NOTHING
    : fragment`LEFT JOIN oauth_clients o ON o.id = k.client_id`;
}

function sessionOf({ session }: Requirements): SqlFragment {
  return session?.of === 'grant'
    ? fragment`(SELECT g.session_id FROM oauth_grants g WHERE g.id = k.grant_id)`
    : fragment`k.session_id`;
}

function columnList(columns: SqlFragment | undefined): SqlFragment {
  return columns ? fragment`, ${columns}` : NOTHING;
}
