import { fragment, joined, type SqlFragment } from '#platform/database/statements/sql.js';

/** The reasons why nothing is issued. `gone`: a row that the credential hangs on is missing, over, or of another user. */
export type Denial = 'gone' | 'account_inactive' | 'domain_not_owned' | 'withheld';

/**
 * The treatment of a row that another transaction has locked. `wait`: the statement waits and then decides. `skip`: the statement does
 * not issue the request.
 */
export type RowLocks = 'wait' | 'skip';

/** The rows that a credential hangs on: the statement locks them, and they must be live and of one user. */
export interface Requirements {
  /** The user: named by the request, or the owner of its client, where the client has an owner. */
  readonly user: 'of the request' | 'owner of the client';
  readonly client?: boolean;
  /** The session: named by the request, or that of its grant; with a condition on the row `s`. */
  readonly session?: { readonly of: 'request' | 'grant'; readonly where: SqlFragment };
  /** The grant: the one that the credential hangs on, or the parent of a new grant, where it has a parent. */
  readonly grant?: 'required' | 'parent';
}

/**
 * The SQL of a kind of credential, of constants alone. `k` is a request with its columns, `a` its user, `s` its session, `g` its grant.
 * `i` is a decided request: its columns, `of_user`, `org_id` and `user_email`, and of the rows that the kind requires `client_name`,
 * `client_org_id`, `of_session`, `session_ends` and `grant_ends`.
 */
export interface IssuanceSql {
  readonly requires: Requirements;
  /** The columns of a request in PostgreSQL. `user_id`, `client_id`, `session_id` and `grant_id` are always there. */
  readonly columns: SqlFragment;
  /** A condition on `k` and `a` under which the denial is `gone`. */
  readonly goneIf?: SqlFragment;
  /** More columns of `i`, computed of `k`, `a`, `s` and `g`. */
  readonly computed?: SqlFragment;
  /** A condition on `i`, without which the denial is `withheld`. */
  readonly issuedIf?: (locks: RowLocks) => SqlFragment | undefined;
  /** A value that is drawn for each issued row alone, such as a serial: a column of `i`. */
  readonly drawn?: { readonly value: SqlFragment; readonly column: SqlFragment };
  /** Writes the issued rows: `INSERT … SELECT …` from {@link ISSUED}. */
  readonly written: SqlFragment;
  /** Writes the audit rows in the same way. */
  readonly audited: SqlFragment | undefined;
  /** The columns of `i` that the caller reads. */
  readonly returned?: SqlFragment;
}

const NOTHING = fragment``;

/**
 * Writes the statement of a kind: it locks the rows behind the requests, decides about each request, and writes what is issued with
 * its audit rows. The same text serves one request and many; only `SKIP LOCKED` differs. `OFFSET 0` makes PostgreSQL compute each
 * column once.
 */
export function issuanceStatement(kind: IssuanceSql, locks: RowLocks): SqlFragment {
  const { requires, columns, computed, drawn, written, audited, returned } = kind;
  const behind = rowsBehind(requires);
  const condition = kind.issuedIf?.(locks);
  const isIssued = condition
    ? fragment`i.denial IS NULL AND (${condition})`
    : fragment`i.denial IS NULL`;
  return fragment`
    WITH asked AS MATERIALIZED (
      SELECT k.*, ${userOf(requires)} AS of_user, ${sessionOf(requires)} AS of_session
      FROM jsonb_to_recordset($1::jsonb) AS k (
        n int, user_id uuid, client_id text, session_id uuid, grant_id bytea, ${columns})
    ), ${lockInOrder(behind, locks)}, decided AS MATERIALIZED (
      SELECT i.*, ${isIssued} AS is_issued
        ${drawn ? fragment`, CASE WHEN ${isIssued} THEN ${drawn.value} END AS ${drawn.column}` : NOTHING}
      FROM (
        SELECT k.*, ${joined(
          behind.map((row) => row.columns),
          ', ',
        )} ${columnList(computed)}, ${denialOf(kind, behind)} AS denial
        FROM asked k ${joined(
          behind.map(({ join }) => join),
          ' ',
        )} OFFSET 0
      ) i
    ), written AS (${written})
    ${audited ? fragment`, audited AS (${audited})` : NOTHING}
    SELECT i.n, CASE WHEN NOT i.is_issued THEN coalesce(i.denial, 'withheld') END AS denial ${columnList(returned)}
    FROM decided i`;
}

/** Says why a request is denied, or NULL: the one rule of activity, ownership of the e-mail domain, and end. */
function denialOf({ goneIf }: IssuanceSql, behind: readonly RowBehind[]): SqlFragment {
  const isGone = joined([...behind.map((row) => row.isGone), ...(goneIf ? [goneIf] : [])], ' OR ');
  return fragment`CASE WHEN ${isGone} THEN 'gone' WHEN NOT a.active THEN 'account_inactive'
    WHEN NOT a.is_own THEN 'domain_not_owned' END`;
}

/** The source of the rows that a kind writes. */
export const ISSUED = fragment`FROM decided i WHERE i.is_issued`;

/** A row behind a request: how it is found and locked, and what the decision reads of it. */
interface RowBehind {
  readonly name: SqlFragment;
  readonly selected: SqlFragment;
  readonly from: SqlFragment;
  readonly where: SqlFragment;
  readonly lock: SqlFragment;
  readonly columns: SqlFragment;
  readonly join: SqlFragment;
  readonly isGone: SqlFragment;
}

/** The rows behind a request in the one order in which they are locked: the user, the client, the session, the grant. */
function rowsBehind({ user, client, session, grant }: Requirements): RowBehind[] {
  return [
    {
      name: fragment`account`,
      selected: fragment`u.id, u.org_id, u.email, u.active, o.is_own`,
      from: fragment`users u CROSS JOIN LATERAL address_ownership(u.org_id, u.email) o`,
      where: fragment`u.id = ANY (ARRAY(SELECT of_user FROM asked))`,
      lock: fragment`FOR SHARE OF u`,
      columns: fragment`a.org_id, a.email AS user_email`,
      join: fragment`LEFT JOIN account a ON a.id = k.of_user`,
      isGone:
        user === 'of the request'
          ? fragment`a.id IS NULL`
          : fragment`(k.of_user IS NOT NULL AND a.id IS NULL)`,
    },
    ...(client ? [CLIENT] : []),
    ...(session ? [sessionBehind(session.where)] : []),
    ...(grant ? [grantBehind(grant === 'parent')] : []),
  ];
}

const CLIENT: RowBehind = {
  name: fragment`client`,
  selected: fragment`c.id, c.org_id, c.metadata ->> 'client_name' AS name`,
  from: fragment`oauth_clients c`,
  where: fragment`c.id = ANY (ARRAY(SELECT client_id FROM asked))`,
  lock: fragment`FOR KEY SHARE OF c`,
  columns: fragment`c.name AS client_name, c.org_id AS client_org_id`,
  join: fragment`LEFT JOIN client c ON c.id = k.client_id`,
  isGone: fragment`c.id IS NULL`,
};

function sessionBehind(where: SqlFragment): RowBehind {
  return {
    name: fragment`session`,
    selected: fragment`s.id, s.user_id, s.expires_at`,
    from: fragment`sessions s`,
    where: fragment`s.id = ANY (ARRAY(SELECT of_session FROM asked)) AND ${where} AND s.expires_at > now()`,
    lock: fragment`FOR SHARE OF s`,
    columns: fragment`s.expires_at AS session_ends`,
    join: fragment`LEFT JOIN session s ON s.id = k.of_session AND s.user_id = a.id`,
    isGone: fragment`s.id IS NULL`,
  };
}

/** The parent of a grant is locked against the change of its end as well: whichever comes second sees what the first did. */
function grantBehind(isParent: boolean): RowBehind {
  return {
    name: fragment`granted`,
    selected: fragment`g.id, g.user_id, g.session_id, g.expires_at`,
    from: fragment`oauth_grants g`,
    where: fragment`g.id = ANY (ARRAY(SELECT grant_id FROM asked)) ${isParent ? fragment`AND g.expires_at > now()` : NOTHING}`,
    lock: isParent ? fragment`FOR SHARE OF g` : fragment`FOR KEY SHARE OF g`,
    columns: fragment`g.expires_at AS grant_ends`,
    join: fragment`LEFT JOIN granted g ON g.id = k.grant_id AND g.user_id = a.id AND g.session_id = s.id`,
    isGone: isParent ? fragment`(k.grant_id IS NOT NULL AND g.id IS NULL)` : fragment`g.id IS NULL`,
  };
}

/**
 * Locks the rows and reads them as they are then. The end of an account and the end of a client take rows in the same order, so that
 * no two wait for one another, and the transaction that comes second sees what the first one did. A count of the rows before makes
 * PostgreSQL lock those first. Only the statement of one request waits, so that two requests never wait for one another in a circle.
 */
function lockInOrder(behind: readonly RowBehind[], locks: RowLocks): SqlFragment {
  const skip = locks === 'skip' ? fragment`SKIP LOCKED` : NOTHING;
  return joined(
    behind.map(({ name, selected, from, where, lock }, index) => {
      const before = behind[index - 1]?.name;
      const after = before ? fragment`(SELECT count(*) FROM ${before}) before CROSS JOIN` : NOTHING;
      return fragment`${name} AS MATERIALIZED (SELECT ${selected} FROM ${after} ${from} WHERE ${where} ${lock} ${skip})`;
    }),
    ', ',
  );
}

function userOf({ user }: Requirements): SqlFragment {
  return user === 'of the request'
    ? fragment`k.user_id`
    : fragment`(SELECT c.owner_id FROM oauth_clients c WHERE c.id = k.client_id)`;
}

function sessionOf({ session }: Requirements): SqlFragment {
  return session?.of === 'grant'
    ? fragment`(SELECT g.session_id FROM oauth_grants g WHERE g.id = k.grant_id)`
    : fragment`k.session_id`;
}

function columnList(columns: SqlFragment | undefined): SqlFragment {
  return columns ? fragment`, ${columns}` : NOTHING;
}
