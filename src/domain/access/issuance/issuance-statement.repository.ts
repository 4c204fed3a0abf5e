import { CONFIRMED } from '#platform/database/identity/confirmed.js';
import {
  fragment,
  joined,
  joinedParts,
  type SqlFragment,
} from '#platform/database/statements/sql.js';
import {
  conditionsOf,
  denialOfChange,
  DENIALS_OF_REACH,
  joinReached,
  rowOfReach,
  type Reach,
} from '../reach/reach.repository.js';
import {
  columnsOfLocked,
  lockInOrder,
  nameOf,
  namesOfLocked,
  rowsBehind,
  type Requirements,
  type RowBehind,
  type RowLocks,
} from './lock-order.repository.js';

/**
 * The reasons why no credential is issued. `gone`: a row that the credential depends on, such as
 * the session, is missing, has expired, or belongs to another user. `changed`: an access rule
 * changed while the statement ran, so a second statement must decide. `too_many`: the user has so
 * many credentials of this kind on record that one transaction could not end more. `withheld`: a
 * condition that only this kind of credential has (`issuedIf`) does not hold.
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
  | 'too_many'
  | 'withheld';

/**
 * The SQL by which one kind of credential (such as SSH certificates) is issued. It consists of
 * constants, so that no value of a request can become SQL.
 *
 * The SQL uses these aliases: `k` is a request with its columns, `a` its user, `s` its session, `g`
 * its grant. `i` is a request after the decision, with the columns of the request, `org_id` and
 * `user_email`. If `requires` names the client, `i` also has `client_name` and `client_org_id`. For
 * the session it has `session_ends` and `session_key` (the security key that opened the session),
 * and for the grant `grant_ends`. For a kind with a `reach`, `r` is the target.
 */
export interface IssuanceSql {
  readonly requires: Requirements;
  /**
   * The columns of a request, each with its PostgreSQL type. `user_id` is always among them, and
   * `client_id`, `session_id` and `grant_id` are if `requires` names the client, the session or the
   * grant.
   */
  readonly columns: Readonly<Record<string, string>>;
  /**
   * A condition on the request `k`, its user `a`, its session `s` and its grant `g`. If the
   * condition holds, the request is denied with `gone`.
   */
  readonly goneIf?: SqlFragment | undefined;
  /**
   * Further reasons for a denial, as WHEN branches of the CASE expression that computes the reason.
   * They read the request, its user, session, grant and target (`k`, `a`, `s`, `g` and `r`).
   */
  readonly denials?: SqlFragment;
  /**
   * Further columns of `i`, the request after the decision. Their SQL reads `k`, `a`, `s`, `g` and,
   * for a kind with a `reach`, `r`.
   */
  readonly computed?: SqlFragment;
  /**
   * A condition on `i`, the request after the decision. If it does not hold, the request is denied
   * with `withheld`.
   */
  readonly issuedIf?: (locks: RowLocks) => SqlFragment | undefined;
  /**
   * A column of `i` that is computed only for issued credentials. An example is a serial from a
   * sequence: a denied request must not use up a serial.
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
  readonly returned?: SqlFragment | undefined;
  /** Finds the caller of each request again; undefined if an earlier statement has done so. */
  readonly confirming?: ConfirmingSql;
}

/**
 * The parts of an issuing statement that find the caller of a request again and count the request
 * in its rate limit, because no statement before has done so for this request. They use the aliases
 * of {@link IssuanceSql}.
 */
export interface ConfirmingSql {
  /** The columns of a request that only these parts read. */
  readonly columns: Readonly<Record<string, string>>;
  /** A further condition on the session `s` of a request `k`. */
  readonly session: SqlFragment;
  /** Subqueries that run before the decision and write. They read the subquery `asked`. */
  readonly spent?: SqlFragment;
  /** A condition on the request. If it holds, the request is denied with `gone`. */
  readonly goneIf?: SqlFragment;
  /** Further columns that the statement returns about each request `i`. */
  readonly returned?: SqlFragment;
  /**
   * The subquery `admitted`, which counts the requests in their rate limits and has a row with
   * `bucket` and `debt` for each admitted one. Requests that are not admitted do not take part in
   * the statement. The requests then have a column `bucket`. It is undefined if an earlier decision
   * has counted the requests.
   */
  readonly admitted?: SqlFragment;
}

const NOTHING = fragment``;

/**
 * Returns the statement that issues one kind of credential. The statement locks the rows that the
 * requests depend on, decides about each request, and inserts the issued credentials with their
 * audit events. The same SQL serves a single request and a batch, except that only a batch skips
 * locked rows (`SKIP LOCKED`). `OFFSET 0` keeps PostgreSQL from merging the subquery into the outer
 * query, so that each column is computed only once.
 */
export function issuanceStatement(plain: IssuanceSql, locks: RowLocks): SqlFragment {
  const kind = withConfirmation(plain);
  const { requires, drawn, written, alsoWritten, audited, returned } = kind;
  const { reach } = requires;
  const behind = rowsBehind(requires);
  const { locked, from } = lockedRows(behind, reach, locks);
  const condition = kind.issuedIf?.(locks);
  // If the condition is NULL, nothing is issued. The column `is_issued` must then be false and not
  // NULL, because later parts of the statement read it by NOT.
  const isIssued = condition
    ? fragment`i.denial IS NULL AND coalesce((${condition}), false)`
    : fragment`i.denial IS NULL`;
  return fragment`
    WITH ${kind.confirming?.admitted ? fragment`admitted AS (${kind.confirming.admitted}),` : NOTHING}
    asked AS ${askedRows(kind)} ${kind.confirming?.spent ? fragment`, ${kind.confirming.spent}` : NOTHING} ${locked}, decided AS MATERIALIZED (
      SELECT i.*, ${isIssued} AS is_issued
        ${drawn ? fragment`, CASE WHEN ${isIssued} THEN ${drawn.value} END AS ${drawn.column}` : NOTHING}
      FROM (SELECT ${decidedColumns(kind, behind)} FROM ${from} OFFSET 0) i
    ), written AS (${written})
    ${alsoWritten ? fragment`, also_written AS (${alsoWritten})` : NOTHING}
    ${audited ? fragment`, audited AS (${audited})` : NOTHING}
    SELECT i.n, CASE WHEN NOT i.is_issued THEN coalesce(i.denial, 'withheld') END AS denial
      ${reach ? fragment`, CASE WHEN i.denial = 'condition_unmet' THEN ${conditionsOf(fragment`i`)} END AS conditions` : NOTHING}
      ${columnList(returned)}
    FROM decided i`;
}

/** Adds the columns and conditions of `confirming` to the others of a kind of credential. */
function withConfirmation(kind: IssuanceSql): IssuanceSql {
  const { confirming, requires, goneIf, returned } = kind;
  if (!confirming) return kind;
  const { admitted } = confirming;
  const { session } = requires;
  const limit =
    admitted && fragment`(SELECT b.debt FROM admitted b WHERE b.bucket = i.bucket) AS debt`;
  return {
    ...kind,
    columns: { ...kind.columns, ...confirming.columns, ...(admitted && { bucket: 'text' }) },
    requires: {
      ...requires,
      ...(session && {
        session: { ...session, where: fragment`${session.where} AND ${confirming.session}` },
      }),
    },
    goneIf: joinedParts([goneIf, confirming.goneIf], ' OR '),
    returned: joinedParts([returned, confirming.returned, limit], ', '),
  };
}

/**
 * Returns a subquery that reads the requests from the JSON parameter `$1`. A subquery that computes
 * a column is `MATERIALIZED`, so that PostgreSQL computes the column once for each request.
 */
function askedRows({ requires, columns, confirming }: IssuanceSql): SqlFragment {
  const typed = Object.entries(columns).map(([name, type]) => nameOf(`${name} ${type}`));
  const { user, session } = requires;
  const ofOwner = user === 'owner of the client';
  const ofGrant = session?.of === 'grant';
  return fragment`${ofOwner || ofGrant ? fragment`MATERIALIZED` : NOTHING} (
      SELECT k.* ${ofOwner ? fragment`, o.owner_id AS of_user` : NOTHING}
        ${ofGrant ? fragment`, (SELECT g.session_id FROM oauth_grants g WHERE g.id = k.grant_id) AS of_session` : NOTHING}
      FROM jsonb_to_recordset($1::jsonb) AS k (n int, ${joined(typed, ', ')})
      ${confirming?.admitted ? fragment`JOIN admitted ON admitted.bucket = k.bucket` : NOTHING}
      ${ofOwner ? fragment`LEFT JOIN oauth_clients o ON o.id = k.client_id` : NOTHING})`;
}

/**
 * Returns the source of the decisions: each request `k` with its locked rows and its target. For
 * groups of hosts, a subquery `locked` first collects the rows of all requests, because one call of
 * `reach_of_hosts` decides about all of them.
 */
function lockedRows(
  behind: readonly RowBehind[],
  reach: Reach | undefined,
  locks: RowLocks,
): { readonly locked: SqlFragment; readonly from: SqlFragment } {
  const rows = [...behind, ...(reach ? [rowOfReach(reach)] : [])];
  const source = fragment`asked k ${lockInOrder(rows, locks)}`;
  const target = reach ? joinReached(reach) : NOTHING;
  if (reach !== 'hosts') {
    return { locked: NOTHING, from: fragment`${source} ${target} WHERE ${CONFIRMED}` };
  }
  return {
    locked: fragment`, locked AS MATERIALIZED (
      SELECT k.*, ${columnsOfLocked(rows)} FROM ${source} WHERE ${CONFIRMED})`,
    from: fragment`locked k ${namesOfLocked(rows)} ${target}`,
  };
}

/** Returns the SQL of the columns of `i`, the row with one request and the decision about it. */
function decidedColumns(kind: IssuanceSql, behind: readonly RowBehind[]): SqlFragment {
  const asked = ['n', ...Object.keys(kind.columns)].map((name) => fragment`k.${nameOf(name)}`);
  const ofRows = behind.map((row) => row.columns);
  const conditions = fragment`r.touch_within_seconds, r.models, r.user_verification`;
  return fragment`${joined([...asked, ...ofRows], ', ')} ${columnList(kind.computed)},
    ${denialOf(kind, behind)} AS denial ${kind.requires.reach ? fragment`, ${conditions}` : NOTHING}`;
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
 * The FROM clause by which an INSERT of the issuance statement reads the allowed requests only.
 * Each is a row of the subquery `decided`, under the alias `i`.
 */
export const ISSUED = fragment`FROM decided i WHERE i.is_issued`;

function columnList(columns: SqlFragment | undefined): SqlFragment {
  return columns ? fragment`, ${columns}` : NOTHING;
}
