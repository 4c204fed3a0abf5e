import { fragment, joined, sql, SqlFragment } from '#platform/database/statements/sql.js';
import type { LockedRow, Reach } from '../reach/reach.repository.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { grantStands } from './standing-rows.repository.js';

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
   * If a client has an owner, the owner must have a security key.
   */
  readonly user: 'of the request' | 'owner of the client';
  readonly client?: boolean;
  /**
   * True if the request names an application of kind `kubernetes`, which must belong to the present
   * organization of the user.
   */
  readonly cluster?: boolean;
  /**
   * The session that the credential depends on; undefined for a credential that needs none, such as
   * a token of a client itself.
   */
  readonly session?: SessionRequirement;
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

/**
 * The session that a credential depends on: the session that the request names, or the session of
 * the grant. `where` is a further SQL condition on the session, which has the alias `s`.
 */
export interface SessionRequirement {
  readonly of: 'request' | 'grant';
  readonly where: SqlFragment;
}

const NOTHING = fragment``;

/**
 * A row that a request depends on: the SQL that finds and locks it, and the columns that the
 * decision reads.
 */
export interface RowBehind extends LockedRow {
  readonly columns: SqlFragment;
  readonly isGone: SqlFragment;
}

/**
 * Returns the rows that a request depends on, in the one order in which this service locks rows.
 * The order is user, client, cluster, session, grant, keys of the client's owner, installation of
 * the GitHub App, and organization. The version of the access rules (`rowOfReach`) is locked after
 * them. A transaction that ends an account locks in the same order (`domain/access-revocation`), so
 * that no two transactions wait for each other.
 */
export function rowsBehind(requires: Requirements): RowBehind[] {
  const { user, client, cluster, session, grant, installation } = requires;
  return [
    accountBehind(requires),
    ...(client ? [CLIENT] : []),
    ...(cluster ? [CLUSTER] : []),
    ...(session ? [sessionBehind(session, requires)] : []),
    ...(grant ? [grantBehind(grant === 'parent')] : []),
    ...(user === 'owner of the client' ? [KEY_OF_OWNER] : []),
    ...(installation ? [INSTALLATION, REPOSITORY_RULE] : []),
  ];
}

/** Returns the SQL of the id of the user who gets the credential of a request. */
function userOf(user: Requirements['user']): SqlFragment {
  return user === 'of the request' ? fragment`k.user_id` : fragment`k.of_user`;
}

/**
 * Returns the SQL that finds and locks the user. If the organization loses its e-mail domain, the
 * sessions of its users are deleted. A request with a session then finds no session and is denied.
 * A request without a session must read the owner of the domain instead, after the lock on the
 * user.
 */
function accountBehind({ user, session }: Requirements): RowBehind {
  const id = userOf(user);
  const account = {
    id: fragment`u.id`,
    org_id: fragment`u.org_id`,
    email: fragment`u.email`,
    active: fragment`u.active`,
  };
  return {
    alias: fragment`a`,
    selected: session ? { ...account, is_own: fragment`o.is_own` } : account,
    from: session
      ? fragment`users u CROSS JOIN LATERAL address_ownership(u.org_id, u.email) o`
      : fragment`users u`,
    where: fragment`u.id = ${id}`,
    lock: fragment`FOR SHARE OF u`,
    columns: fragment`a.org_id, a.email AS user_email`,
    isGone:
      user === 'of the request'
        ? fragment`a.id IS NULL`
        : fragment`(${id} IS NOT NULL AND a.id IS NULL)`,
  };
}

const CLIENT: RowBehind = {
  alias: fragment`c`,
  selected: {
    id: fragment`c.id`,
    kind: fragment`c.kind`,
    org_id: fragment`c.org_id`,
    name: fragment`c.metadata ->> 'client_name'`,
    ended_before: fragment`c.ended_before`,
  },
  from: fragment`oauth_clients c`,
  where: fragment`c.id = k.client_id AND c.kind <> 'removed'`,
  lock: fragment`FOR KEY SHARE OF c`,
  columns: fragment`c.name AS client_name, c.org_id AS client_org_id`,
  isGone: fragment`c.id IS NULL`,
};

const CLUSTER: RowBehind = {
  alias: fragment`t`,
  selected: { id: fragment`t.id` },
  from: fragment`oauth_clients t`,
  where: fragment`t.id = k.application_id AND (t.org_id = a.org_id) IS TRUE AND t.kind = 'kubernetes'`,
  lock: fragment`FOR KEY SHARE OF t`,
  columns: fragment`t.id AS cluster_id`,
  isGone: fragment`t.id IS NULL`,
};

/**
 * The security keys of the owner of a client. A client whose owner has no key gets no credential,
 * because the service issues nothing to users without a hardware key. If another transaction is
 * removing a key, the statement of a single request waits for that transaction and then sees the
 * removal. A batch skips the key.
 */
const KEY_OF_OWNER: RowBehind = {
  alias: fragment`h`,
  selected: { user_id: fragment`h.user_id` },
  from: fragment`authenticators h`,
  where: fragment`h.user_id = k.of_user`,
  lock: fragment`FOR KEY SHARE OF h`,
  columns: fragment`h.user_id AS key_owner`,
  isGone: fragment`(k.of_user IS NOT NULL AND h.user_id IS NULL)`,
  isOneOfMany: true,
};

/**
 * The installation of the GitHub App that the request names. If it is missing, suspended or of
 * another organization, nothing is issued: the denial is `withheld`.
 */
const INSTALLATION: RowBehind = {
  alias: fragment`b`,
  selected: { id: fragment`b.id` },
  from: fragment`github_installations b`,
  where: fragment`b.id = k.installation_id AND (b.org_id = a.org_id) IS TRUE AND b.suspended_at IS NULL`,
  lock: fragment`FOR SHARE OF b`,
  columns: fragment`b.id IS NOT NULL AS is_installed`,
  isGone: fragment`false`,
};

/**
 * The row of the organization, which states if GitHub tokens for all repositories are allowed. The
 * row is read only if a request is for all repositories.
 */
const REPOSITORY_RULE: RowBehind = {
  alias: fragment`q`,
  selected: { id: fragment`q.id`, github_all_repositories: fragment`q.github_all_repositories` },
  from: fragment`organizations q`,
  where: fragment`q.id = a.org_id AND k.repositories IS NULL`,
  lock: fragment`FOR SHARE OF q`,
  columns: fragment`coalesce(q.github_all_repositories, false) AS gives_all_repositories`,
  isGone: fragment`false`,
};

/**
 * Returns the SQL that finds and locks the session that a request depends on. If the credential
 * opens a target, the SQL also reads the touches of security keys, which the conditions of the
 * target are about. If it is for a client, the SQL reads the `sid`, by which logout notices name
 * the session.
 */
function sessionBehind(
  { of, where }: SessionRequirement,
  { client, reach }: Requirements,
): RowBehind {
  const id = of === 'request' ? fragment`k.session_id` : fragment`k.of_session`;
  return {
    alias: fragment`s`,
    selected: {
      id: fragment`s.id`,
      authenticator_id: fragment`s.authenticator_id`,
      expires_at: fragment`s.expires_at`,
      ...(client && { sid: fragment`s.sid` }),
      ...(reach && { touches: fragment`s.touches` }),
    },
    from: fragment`sessions s`,
    where: fragment`s.id = ${id} AND (s.user_id = a.id) IS TRUE AND ${where} AND s.expires_at > now()`,
    lock: fragment`FOR SHARE OF s`,
    columns: fragment`s.expires_at AS session_ends, s.authenticator_id AS session_key`,
    isGone: fragment`s.id IS NULL`,
  };
}

/**
 * The SQL condition that a grant ended with all grants of its client. It reads the locked row of
 * the client, so that it also sees an end that committed while the statement waited for the lock.
 */
const ENDED_WITH_CLIENT = fragment`(g.created_at <= c.ended_before) IS TRUE`;

/**
 * Returns the SQL that finds and locks the grant that a request depends on.
 *
 * @param isParent true if the request writes a new grant by token exchange (RFC 8693), and this is
 *   the grant of the exchanged token. The new grant must end no later than the parent. So FOR SHARE
 *   blocks the deletion of the parent and also a change of its expiry.
 */
function grantBehind(isParent: boolean): RowBehind {
  const isOver = fragment`g.id IS NULL OR NOT ${grantStands(fragment`g`)}`;
  return {
    alias: fragment`g`,
    selected: {
      id: fragment`g.id`,
      expires_at: fragment`g.expires_at`,
      client_id: fragment`g.client_id`,
      created_at: fragment`g.created_at`,
      parent_id: fragment`g.parent_id`,
    },
    from: fragment`oauth_grants g`,
    where: fragment`g.id = k.grant_id AND (g.user_id = a.id AND g.session_id = s.id) IS TRUE ${isParent ? fragment`AND g.expires_at > now()` : NOTHING}`,
    lock: isParent ? fragment`FOR SHARE OF g` : fragment`FOR KEY SHARE OF g`,
    columns: fragment`g.expires_at AS grant_ends`,
    isGone: isParent
      ? fragment`(k.grant_id IS NOT NULL AND (${isOver}))`
      : fragment`(${isOver} OR ${ENDED_WITH_CLIENT})`,
  };
}

/**
 * Returns the joins that lock the rows of a request `k` and read their present values. The
 * transactions that end an account or a client lock rows in the same order, so that no two
 * transactions wait for each other. The second of two transactions then sees what the first did.
 *
 * Each subquery also reads a column of the row before it, so that PostgreSQL locks the rows of a
 * request in this order. Only the statement of a single request waits for locks, so that batches
 * never wait for each other in a circle.
 *
 * A comparison with a row that was locked before is written with `IS TRUE`, because PostgreSQL uses
 * no index for such a comparison. Otherwise it could look for a session by the index on its user,
 * and read thousands of sessions of one user.
 */
export function lockInOrder(rows: readonly LockedRow[], locks: RowLocks): SqlFragment {
  const skip = locks === 'skip' ? fragment`SKIP LOCKED` : NOTHING;
  return joined(
    rows.map((row, index) => {
      const { alias, selected, from, where, lock, isOneOfMany } = row;
      const before = rows[index - 1];
      const after = before ? fragment`, ${before.alias}.${firstOf(before)} AS row_before` : NOTHING;
      const columns = Object.entries(selected).map(
        ([name, value]) => fragment`${value} AS ${nameOf(name)}`,
      );
      const found = fragment`SELECT ${joined(columns, ', ')} ${after} FROM ${from} WHERE ${where} ${lock} ${skip}`;
      const one = isOneOfMany ? fragment`SELECT DISTINCT f.* FROM (${found}) f` : found;
      return fragment`LEFT JOIN LATERAL (${one}) ${alias} ON true`;
    }),
    ' ',
  );
}

/**
 * Returns the columns of locked rows as columns of one row, such as `a_org_id` for `a.org_id`.
 */
export function columnsOfLocked(rows: readonly LockedRow[]): SqlFragment {
  const columns = rows.flatMap(({ alias, selected }) =>
    Object.keys(selected).map(
      (name) => fragment`${alias}.${nameOf(name)} AS ${alias}_${nameOf(name)}`,
    ),
  );
  return joined(columns, ', ');
}

/**
 * Returns the joins that give the columns of {@link columnsOfLocked} their names back, such as
 * `a.org_id` for `k.a_org_id`. PostgreSQL replaces the names while it plans the statement, so the
 * joins cost nothing when it runs.
 */
export function namesOfLocked(rows: readonly LockedRow[]): SqlFragment {
  const joins = rows.map(({ alias, selected }) => {
    const columns = Object.keys(selected).map(
      (name) => fragment`k.${alias}_${nameOf(name)} AS ${nameOf(name)}`,
    );
    return fragment`CROSS JOIN LATERAL (SELECT ${joined(columns, ', ')}) ${alias}`;
  });
  return joined(joins, ' ');
}

function firstOf({ selected }: LockedRow): SqlFragment {
  return nameOf(Object.keys(selected)[0] ?? '');
}

/**
 * Returns the name of a column or an alias as SQL, without quotes. A caller passes only constants
 * of this product, so no value of a request can become SQL.
 */
export function nameOf(name: string): SqlFragment {
  return new SqlFragment([name], []);
}

/**
 * Locks the rows of users until the transaction ends, in the order of their ids so that two calls
 * cannot wait for each other. The caller must not have locked anything else of these users before,
 * because every transaction locks the user first. An id that is null is skipped.
 */
export async function lockUsers(tx: EntityManager, ids: readonly (string | null)[]): Promise<void> {
  const known = [...new Set(ids.filter((id) => id !== null))];
  if (known.length === 0) return;
  await sql(tx)`SELECT id FROM users WHERE id = ANY (${known}::uuid[]) ORDER BY id FOR UPDATE`;
}
