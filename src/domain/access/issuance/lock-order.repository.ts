import { fragment, joined, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import { rowOfReach, type LockedRow, type Reach } from '../reach/reach.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The treatment of a row that another transaction has locked. `wait`: the statement waits for the
 * row and then decides. `skip`: the statement denies the request.
 */
export type RowLocks = 'wait' | 'skip';

/**
 * The rows that a credential depends on, such as user, session and grant. The statement locks these
 * rows. None may be missing or expired, and all must belong to one user.
 */
export interface Requirements {
  /**
   * The user who gets the credential: the user that the request names, or the owner of the client.
   * A client may have no owner; an owner must have a security key.
   */
  readonly user: 'of the request' | 'owner of the client';
  readonly client?: boolean;
  /**
   * True if the request names an application of kind `kubernetes`, which must belong to the present
   * organization of the user.
   */
  readonly cluster?: boolean;
  /**
   * The session that the credential depends on: the session that the request names, or the session
   * of the grant. `where` is a further condition on `s`, the row of the session.
   */
  readonly session?: { readonly of: 'request' | 'grant'; readonly where: SqlFragment };
  /**
   * The grant. `required`: the credential depends on this grant. `parent`: the credential is itself
   * a new grant, and this is its parent, if it has one.
   */
  readonly grant?: 'required' | 'parent';
  /**
   * True if the request names an installation of the GitHub App with a list of repositories, or
   * with null for all repositories. For null the organization must allow tokens for all
   * repositories.
   */
  readonly installation?: boolean;
  /**
   * The kind of target, such as an AWS role, that the credential opens. The statement then also
   * locks the version of the organization's access rules, so that no rule changes until the
   * transaction ends.
   */
  readonly reach?: Reach;
}

const NOTHING = fragment``;

/**
 * A row that a request depends on: the SQL that finds and locks it, and the columns that the
 * decision reads.
 */
export interface RowBehind extends LockedRow {
  readonly columns: SqlFragment;
  readonly join: SqlFragment;
  readonly isGone: SqlFragment;
}

/**
 * Returns the rows that a request depends on, in the one order in which this service locks rows.
 * The order is user, client, cluster, session, grant, keys of the owner, installation, and
 * organization (for its rule about GitHub tokens for all repositories). The version of the access
 * rules ({@link rowOfReach}) is locked after them. A transaction that ends an account locks in the
 * same order (`domain/access-revocation`), so that no two transactions wait for each other.
 */
export function rowsBehind(requires: Requirements): RowBehind[] {
  const { user, client, cluster, session, grant, installation } = requires;
  return [
    {
      name: fragment`account`,
      // If the organization loses its e-mail domain, the sessions of its users are deleted, so a
      // request with a session notices the loss. A request without a session must read the owner of
      // the domain instead, after the lock on the user.
      selected: session
        ? fragment`u.id, u.org_id, u.email, u.active, o.is_own`
        : fragment`u.id, u.org_id, u.email, u.active`,
      from: session
        ? fragment`users u CROSS JOIN LATERAL address_ownership(u.org_id, u.email) o`
        : fragment`users u`,
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
    ...(cluster ? [CLUSTER] : []),
    ...(session ? [sessionBehind(session.where, requires.reach !== undefined)] : []),
    ...(grant ? [grantBehind(grant === 'parent')] : []),
    ...(user === 'owner of the client' ? [KEY_OF_OWNER] : []),
    ...(installation ? [INSTALLATION, REPOSITORY_RULE] : []),
  ];
}

const CLIENT: RowBehind = {
  name: fragment`client`,
  selected: fragment`c.id, c.kind, c.org_id, c.metadata ->> 'client_name' AS name`,
  from: fragment`oauth_clients c`,
  where: fragment`c.id = ANY (ARRAY(SELECT client_id FROM asked))`,
  lock: fragment`FOR KEY SHARE OF c`,
  columns: fragment`c.name AS client_name, c.org_id AS client_org_id`,
  join: fragment`LEFT JOIN client c ON c.id = k.client_id`,
  isGone: fragment`c.id IS NULL`,
};

const CLUSTER: RowBehind = {
  name: fragment`cluster`,
  selected: fragment`t.id, t.org_id`,
  from: fragment`oauth_clients t`,
  where: fragment`t.id = ANY (ARRAY(SELECT application_id FROM asked)) AND t.kind = 'kubernetes'`,
  lock: fragment`FOR KEY SHARE OF t`,
  columns: fragment`t.id AS cluster_id`,
  join: fragment`LEFT JOIN cluster t ON t.id = k.application_id AND t.org_id = a.org_id`,
  isGone: fragment`t.id IS NULL`,
};

/**
 * The security keys of the owner of a client. A client whose owner has no key gets no credential,
 * because the service issues nothing to users without a hardware key. If another transaction is
 * removing a key, the statement of a single request waits for it and sees the removal; a batch
 * skips the key.
 */
const KEY_OF_OWNER: RowBehind = {
  name: fragment`owner_key`,
  selected: fragment`h.user_id`,
  from: fragment`authenticators h`,
  where: fragment`h.user_id = ANY (ARRAY(SELECT of_user FROM asked))`,
  lock: fragment`FOR KEY SHARE OF h`,
  columns: fragment`h.user_id AS key_owner`,
  join: fragment`LEFT JOIN (SELECT DISTINCT user_id FROM owner_key) h ON h.user_id = k.of_user`,
  isGone: fragment`(k.of_user IS NOT NULL AND h.user_id IS NULL)`,
};

/**
 * The installation of the GitHub App that the request names. If it is missing or suspended, nothing
 * is issued: the denial is `withheld`.
 */
const INSTALLATION: RowBehind = {
  name: fragment`installation`,
  selected: fragment`b.id, b.org_id`,
  from: fragment`github_installations b`,
  where: fragment`b.id = ANY (ARRAY(SELECT installation_id FROM asked)) AND b.suspended_at IS NULL`,
  lock: fragment`FOR SHARE OF b`,
  columns: fragment`b.id IS NOT NULL AS is_installed`,
  join: fragment`LEFT JOIN installation b ON b.id = k.installation_id AND b.org_id = a.org_id`,
  isGone: fragment`false`,
};

/**
 * The row of the organization, which states if GitHub tokens for all repositories are allowed. The
 * row is read only if a request is for all repositories.
 */
const REPOSITORY_RULE: RowBehind = {
  name: fragment`repository_rule`,
  selected: fragment`q.id, q.github_all_repositories`,
  from: fragment`organizations q`,
  where: fragment`q.id = ANY (ARRAY(SELECT org_id FROM account)) AND EXISTS (SELECT FROM asked WHERE repositories IS NULL)`,
  lock: fragment`FOR SHARE OF q`,
  columns: fragment`coalesce(q.github_all_repositories, false) AS gives_all_repositories`,
  join: fragment`LEFT JOIN repository_rule q ON q.id = a.org_id`,
  isGone: fragment`false`,
};

/**
 * Returns the SQL that finds and locks the session that a request depends on.
 *
 * @param withTouches true to read the touches of security keys in the session, too, because the
 *   conditions of targets are about them
 */
function sessionBehind(where: SqlFragment, withTouches: boolean): RowBehind {
  return {
    name: fragment`session`,
    selected: fragment`s.id, s.user_id, s.authenticator_id, s.expires_at, s.sid ${withTouches ? fragment`, s.touches` : NOTHING}`,
    from: fragment`sessions s`,
    where: fragment`s.id = ANY (ARRAY(SELECT of_session FROM asked)) AND ${where} AND s.expires_at > now()`,
    lock: fragment`FOR SHARE OF s`,
    columns: fragment`s.expires_at AS session_ends, s.authenticator_id AS session_key`,
    join: fragment`LEFT JOIN session s ON s.id = k.of_session AND s.user_id = a.id`,
    isGone: fragment`s.id IS NULL`,
  };
}

/**
 * Returns the SQL that finds and locks the grant that a request depends on.
 *
 * @param isParent true if the request writes a new grant by token exchange (RFC 8693), and this is
 *   the grant of the exchanged token. The new grant ends no later than this one. So FOR SHARE
 *   blocks its deletion and also a change of its expiry, and the new grant gets the present expiry.
 */
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
 * Returns the SQL that locks the rows of the requests and reads their present values. The
 * transactions that end an account or a client lock rows in the same order, so that no two
 * transactions wait for each other. The second of two transactions then sees what the first did.
 *
 * Each subquery counts the rows of the subquery before it, so that PostgreSQL runs and locks them
 * in this order. Only the statement of a single request waits for locks, so that batches never wait
 * for each other in a circle.
 */
export function lockInOrder(
  behind: readonly RowBehind[],
  reach: Reach | undefined,
  locks: RowLocks,
): SqlFragment {
  const rows: readonly LockedRow[] = [...behind, ...(reach ? [rowOfReach(reach)] : [])];
  const skip = locks === 'skip' ? fragment`SKIP LOCKED` : NOTHING;
  return joined(
    rows.map(({ name, selected, from, where, lock }, index) => {
      const before = rows[index - 1]?.name;
      const after = before ? fragment`(SELECT count(*) FROM ${before}) before CROSS JOIN` : NOTHING;
      return fragment`${name} AS MATERIALIZED (SELECT ${selected} FROM ${after} ${from} WHERE ${where} ${lock} ${skip})`;
    }),
    ', ',
  );
}

/**
 * Locks the rows of users until the transaction ends, in the order of their ids so that two calls
 * cannot wait for each other. The caller has not yet locked anything else that belongs to these
 * users. An id that is null is skipped.
 */
export async function lockUsers(tx: EntityManager, ids: readonly (string | null)[]): Promise<void> {
  const known = [...new Set(ids.filter((id) => id !== null))];
  if (known.length === 0) return;
  await sql(tx)`SELECT id FROM users WHERE id = ANY (${known}::uuid[]) ORDER BY id FOR UPDATE`;
}
