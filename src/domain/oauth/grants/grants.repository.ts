/**
 * Stores grants. A grant is the permission that a user gives a client; it ends at the latest with
 * the session in which the user gave it.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { ISSUED } from '#domain/access/issuance/issuance-statement.repository.js';
import { IssuanceKind, type Outcome } from '#domain/access/issuance/issuance.repository.js';
import { grantStands, isAfterEnd } from '#domain/access/issuance/standing-rows.repository.js';
import {
  byteaText,
  fragment,
  inOrder,
  sql,
  SqlFragment,
} from '#platform/database/statements/sql.js';
import { noticesOfSessions, RECORDED_SIGN_IN } from '../logout-notices/sign-ins.repository.js';
import type { ResourceOwner, UserProfile } from './resource-owner.js';
import {
  resourceOwner,
  liveGrant,
  userProfile,
  type OwnedGrantRow,
  type ProfileRow,
  type ResourceOwnerRow,
  type LiveGrant,
} from './live-grant.js';

/** A grant of a user to a client, which belongs to a session of the user. */
export interface GrantRow {
  readonly id: Buffer;
  readonly clientId: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly payload: object;
  /**
   * The lifetime of the grant, in seconds from now. If the session ends earlier, the grant ends
   * with it.
   */
  readonly expiresIn: number;
}

/**
 * A grant to write. A token exchange (RFC 8693) writes a grant whose parent is the grant of the
 * exchanged token. The new grant ends no later than its parent.
 */
export interface GrantRequest extends GrantRow {
  readonly parentId?: Buffer;
}

/**
 * The seconds after which {@link endGrantSoon} ends a grant. A request that is already running
 * takes less time, and still gets its tokens.
 */
const ENDS_SOON = 5;

/**
 * The most grants that a user may have. One statement ends all of them when the access of the user
 * ends. It takes 1.5 s for this number, and more grants could exceed its time limit of 10 s. The
 * user could then not be removed.
 */
const MOST_GRANTS = 50_000;

/**
 * The most sign-ins to clients that registered themselves which a user may have on record. The end
 * of the access of the user notifies the clients of all of them, by one statement.
 */
const MOST_SIGN_INS = 20_000;

/** Returns the SQL clause by which a subquery finds a row only if it has as many as a limit. */
function past(limit: number): SqlFragment {
  return new SqlFragment([`OFFSET ${limit - 1}`], []);
}

/** The limits of the grants of a user. */
export interface GrantLimits {
  readonly grants: number;
  /** The most sign-ins to clients that registered themselves. */
  readonly signIns: number;
}

/**
 * Returns the SQL condition that a request `i` is within the limits of its user. `OFFSET` ends each
 * count at its limit.
 */
function isWithin({ grants, signIns }: GrantLimits): SqlFragment {
  return fragment`
    NOT EXISTS (SELECT FROM oauth_grants m WHERE m.user_id = i.user_id ${past(grants)})
    AND NOT (EXISTS (SELECT FROM oauth_clients c WHERE c.id = i.client_id AND c.kind = 'dynamic') AND EXISTS (
      SELECT FROM client_sign_ins x JOIN oauth_clients d ON d.id = x.client_id AND d.kind = 'dynamic'
      WHERE x.user_id = i.user_id ${past(signIns)}))`;
}

/**
 * Returns the kind of issuance that writes the grant of a user to a client. The grant ends with the
 * session of the user, and with its parent grant if it has one. A security key must have verified
 * the session, except in certification test mode.
 *
 * @param limits the limits of a user; beyond them, a request is denied with `withheld`
 */
export function grantKind(limits: GrantLimits): IssuanceKind<GrantRequest, true> {
  const hasRoom = isWithin(limits);
  return new IssuanceKind<GrantRequest, true>(
    {
      requires: {
        user: 'of the request',
        client: true,
        session: { of: 'request', where: fragment`s.level <> 'bootstrap'` },
        grant: 'parent',
        reach: 'client',
      },
      columns: {
        id: 'bytea',
        client_id: 'text',
        user_id: 'uuid',
        session_id: 'uuid',
        grant_id: 'bytea',
        payload: 'jsonb',
        expires_in: 'int',
      },
      computed: fragment`least(g.expires_at, now() + make_interval(secs => k.expires_in)) AS ends, s.sid`,
      // A batch writes only new grants, because a change of an existing grant may have to wait for
      // its lock.
      issuedIf: (locks) =>
        locks === 'wait'
          ? hasRoom
          : fragment`${hasRoom} AND NOT EXISTS (SELECT FROM oauth_grants g WHERE g.id = i.id)
              AND NOT EXISTS (SELECT FROM asked k WHERE k.id = i.id AND k.n < i.n)`,
      written: fragment`
        INSERT INTO oauth_grants (id, parent_id, client_id, user_id, session_id, payload, expires_at)
        SELECT i.id, i.grant_id, i.client_id, i.user_id, i.session_id,
               i.payload || CASE WHEN i.grant_id IS NULL THEN '{}'
                            ELSE jsonb_build_object('exp', floor(extract(epoch FROM i.ends))::bigint) END, i.ends
        ${ISSUED} ORDER BY i.id
        ON CONFLICT (id) DO UPDATE SET payload = EXCLUDED.payload`,
      alsoWritten: RECORDED_SIGN_IN,
      audited: undefined,
    },
    columnsOf,
    () => true,
  );
}

function columnsOf(grant: GrantRequest): object {
  const { id, clientId, userId, sessionId, payload, expiresIn, parentId } = grant;
  return {
    id: byteaText(id),
    client_id: clientId,
    user_id: userId,
    session_id: sessionId,
    grant_id: parentId && byteaText(parentId),
    payload,
    expires_in: expiresIn,
  };
}

/** Writes the grant of a user to a client, within the limits of the user. */
export const GRANT = grantKind({ grants: MOST_GRANTS, signIns: MOST_SIGN_INS });

/** Writes a grant within a transaction, or returns the reason why it is not written. */
export function writeGrant(tx: EntityManager, grant: GrantRequest): Promise<Outcome<true>> {
  return GRANT.issue(tx, grant);
}

/**
 * Finds grants, in the order of the given ids, each with its resource owner. The result is
 * undefined for a grant to whose resource owner tokens may no longer be issued.
 */
export async function findGrants(
  tx: EntityManager,
  ids: readonly Buffer[],
): Promise<(LiveGrant | undefined)[]> {
  const rows = await sql<OwnedGrantRow & { n: number }>(tx)`
    SELECT k.n::int, g.payload, g.expires_at <= now() AS is_over, h.user_id, h.org_id, h.email, h.name, h.is_org_admin,
           h.session_id, h.level, h.authenticator_id, h.aaguid, h.auth_time, h.amr, h.acr, h.expires_at, h.sid
    FROM unnest((SELECT ${ids}::bytea[])) WITH ORDINALITY AS k (id, n)
    JOIN oauth_grants g ON g.id = k.id JOIN oauth_holders h ON h.session_id = g.session_id
    WHERE ${grantStands(fragment`g`)}`;
  return inOrder(ids.length, rows, liveGrant);
}

/**
 * The most grants of a client in a session that decide if the user has consented already. Each
 * sign-in writes a grant of several kilobytes, so that a loop of sign-ins would otherwise read
 * gigabytes.
 */
const MOST_EARLIER = 100;

/**
 * Lists the payloads of the grants that a client has in a session, the newest first, at most
 * {@link MOST_EARLIER}. Grants from before the last change of the client's registration are left
 * out. So are those of token exchanges, which have a parent: the user consented to none of them.
 */
export async function listGrantsOfSession(
  tx: EntityManager,
  sessionId: string,
  clientId: string,
): Promise<Record<string, unknown>[]> {
  const rows = await sql<{ payload: Record<string, unknown> }>(tx)`
    SELECT g.payload FROM oauth_grants g JOIN oauth_clients c ON c.id = g.client_id
    WHERE g.session_id = ${sessionId} AND g.client_id = ${clientId} AND g.expires_at > now()
      AND g.created_at > c.updated_at AND g.parent_id IS NULL AND ${isAfterEnd(fragment`g`, fragment`c`)}
    ORDER BY g.created_at DESC LIMIT ${MOST_EARLIER}`;
  return rows.map(({ payload }) => payload);
}

/** Ends a grant with every code and token that depends on it or on its child grants. */
export async function destroyGrant(tx: EntityManager, id: Buffer): Promise<void> {
  await sql(tx)`DELETE FROM oauth_grants WHERE id = ${id}`;
}

/**
 * Ends the session that a client opened for itself with a grant, and everything that depends on the
 * session. If the grant belongs to the session of a browser, nothing ends.
 */
export async function endOwnSession(tx: EntityManager, id: Buffer): Promise<void> {
  await sql(tx)`
    DELETE FROM sessions s USING oauth_grants g
    WHERE g.id = ${id} AND g.parent_id IS NULL AND s.id = g.session_id AND s.client_id = g.client_id`;
}

/**
 * Ends the child grants of a grant, which token exchanges made; the grant itself stays. The
 * function runs in the transaction of the caller, and locks the session and then the grant. A child
 * grant that another transaction writes at this time is then either deleted here or refused by that
 * transaction.
 */
export async function destroyChildGrants(tx: EntityManager, id: Buffer): Promise<void> {
  await sql(tx)`
    SELECT s.id FROM sessions s JOIN oauth_grants g ON g.session_id = s.id WHERE g.id = ${id} FOR SHARE OF s`;
  await sql(tx)`SELECT id FROM oauth_grants WHERE id = ${id} FOR NO KEY UPDATE`;
  await sql(tx)`DELETE FROM oauth_grants WHERE parent_id = ${id}`;
}

/**
 * Ends a grant and its child grants within {@link ENDS_SOON} seconds. The reason is that a code or
 * token of the grant was used twice at the same time. The session that the client opened for the
 * grant ends as well. The first of the two requests still gets its response, and its tokens end
 * with the grant. The function runs in the transaction of the caller. Each level of grants is
 * updated, and so locked, before the child grants below it are read. So no new child is missed.
 */
export async function endGrantSoon(tx: EntityManager, id: Buffer): Promise<void> {
  // The session will end by its expiry, of which only some clients are notified. So the logout
  // notices to all its clients are queued now.
  await sql(tx)`
    WITH ended AS (
      UPDATE sessions s SET expires_at = least(s.expires_at, now() + make_interval(secs => ${ENDS_SOON}))
      FROM oauth_grants g
      WHERE g.id = ${id} AND g.parent_id IS NULL AND s.id = g.session_id AND s.client_id = g.client_id
      RETURNING s.sid
    )
    ${noticesOfSessions(fragment`ended`)}`;
  for (let ending = await endGrantsSoon(tx, [id]); ending.length > 0;) {
    const children = await sql<{ id: Buffer }>(tx)`
      SELECT id FROM oauth_grants WHERE parent_id = ANY (${ending}::bytea[]) ORDER BY id`;
    ending = await endGrantsSoon(
      tx,
      children.map((child) => child.id),
    );
  }
}

async function endGrantsSoon(tx: EntityManager, ids: readonly Buffer[]): Promise<Buffer[]> {
  if (ids.length === 0) return [];
  const ending = await sql<{ id: Buffer }>(tx)`
    UPDATE oauth_grants
    SET expires_at = least(expires_at, now() + make_interval(secs => ${ENDS_SOON})),
        payload = jsonb_set(payload, '{exp}', to_jsonb(least((payload ->> 'exp')::bigint,
          floor(extract(epoch FROM now()))::bigint + ${ENDS_SOON}))) || '{"ends_soon": true}'
    WHERE id = ANY (${ids}::bytea[])
    RETURNING id`;
  return ending.map((grant) => grant.id);
}

/** Finds the resource owner of a session; undefined if no tokens may be issued to the user. */
export async function resourceOwnerOfSession(
  tx: EntityManager,
  sessionId: string,
): Promise<ResourceOwner | undefined> {
  const [row] = await sql<ResourceOwnerRow>(tx)`
    SELECT h.user_id, h.org_id, h.email, h.name, h.is_org_admin, h.session_id, h.level, h.authenticator_id, h.aaguid,
           h.auth_time, h.amr, h.acr, h.expires_at, h.sid
    FROM oauth_holders h WHERE h.session_id = ${sessionId}`;
  return row && resourceOwner(row);
}

/**
 * Finds the resource owners of browser sessions, in the order of the given token hashes. Sessions
 * that a client such as svc-cli opened, and sessions that an upstream login alone opened, are not
 * found.
 */
export async function resourceOwnersOfBrowsers(
  tx: EntityManager,
  tokenHashes: readonly Buffer[],
): Promise<(ResourceOwner | undefined)[]> {
  const rows = await sql<ResourceOwnerRow & { n: number }>(tx)`
    SELECT k.n::int, h.user_id, h.org_id, h.email, h.name, h.is_org_admin, h.session_id, h.level, h.authenticator_id,
           h.aaguid, h.auth_time, h.amr, h.acr, h.expires_at, h.sid
    FROM unnest((SELECT ${tokenHashes}::bytea[])) WITH ORDINALITY AS k (token_hash, n)
    JOIN oauth_holders h ON h.token_hash = k.token_hash
    WHERE h.session_client IS NULL`;
  return inOrder(tokenHashes.length, rows, resourceOwner);
}

/**
 * Reads the profiles of users, in the order of the given ids. This is a separate statement because
 * the attributes of a user may be long, and most requests need no profile.
 */
export async function profilesOf(
  tx: EntityManager,
  userIds: readonly string[],
): Promise<(UserProfile | undefined)[]> {
  const rows = await sql<ProfileRow & { n: number }>(tx)`
    SELECT k.n::int, u.updated_at,
           CASE WHEN u.scim_managed THEN coalesce(u.user_name, u.email) ELSE u.email END AS user_name,
           CASE WHEN u.scim_managed THEN u.attributes #>> '{name,givenName}' ELSE u.given_name END AS given_name,
           CASE WHEN u.scim_managed THEN u.attributes #>> '{name,familyName}' ELSE u.family_name END AS family_name
    FROM unnest((SELECT ${userIds}::uuid[])) WITH ORDINALITY AS k (id, n) JOIN users u ON u.id = k.id`;
  return inOrder(userIds.length, rows, userProfile);
}

/**
 * Locks the row of the user FOR SHARE, and then finds the resource owner of a browser session. A
 * transaction that ends the access of the user locks the same row first. So it either ends what
 * this transaction issues, or this transaction finds no resource owner.
 */
export async function lockResourceOwnerOfBrowser(
  tx: EntityManager,
  userId: string,
  tokenHash: Buffer,
): Promise<ResourceOwner | undefined> {
  await sql(tx)`SELECT id FROM users WHERE id = ${userId} FOR SHARE`;
  const [found] = await resourceOwnersOfBrowsers(tx, [tokenHash]);
  return found;
}
