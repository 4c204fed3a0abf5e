/**
 * Clients that registered themselves (RFC 7591). Their number is limited as long as no user has
 * consented to them. The file also stores the consents of users to clients.
 */

import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { ADVISORY_LOCKS } from '#platform/database/statements/advisory-lock-keys.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import { DYNAMIC_CLIENT_DAYS, redirectUrisOf } from './clients.repository.js';

/** The scopes and claims that a user consents to. */
export interface ConsentedAccess {
  readonly scopes: readonly string[];
  readonly claims: readonly string[];
}

/** A consent of a user to a client, with the facts that the consent page showed. */
export interface Consent extends ConsentedAccess {
  readonly redirectUri: string;
  /** The time at which the browser requested the consent page, in seconds since 1970. */
  readonly shownAt: number;
}

/**
 * The consent to a client that registered itself. It contains no scopes, because such a client asks
 * for its scopes again in each session.
 */
const NOTHING_MORE: Consent = { scopes: [], claims: [], redirectUri: '', shownAt: 0 };

/**
 * The consent of a user to an application, with the redirect URIs of the application at that time.
 */
export interface RecordedConsent extends ConsentedAccess {
  readonly redirectUris: readonly string[];
}

/**
 * Waits until no other transaction registers a client, and takes the lock until this transaction
 * ends. Without the lock, several registrations at the same time could exceed the limits of
 * clients.
 */
export async function lockRegistrations(tx: EntityManager): Promise<void> {
  await sql(tx)`SELECT pg_advisory_xact_lock(${ADVISORY_LOCKS.selfRegistration})`;
}

/**
 * Counts the clients that registered from a network and to which no user has consented. A network
 * is one IPv4 address or a /64 of IPv6.
 */
export async function countClientsOfNetwork(tx: EntityManager, address: string): Promise<number> {
  const [row] = await sql<{ n: number }>(tx)`
    SELECT count(*)::int AS n FROM oauth_clients
    WHERE kind = 'dynamic' AND consented_at IS NULL AND registered_from = network_of(${address}::inet)
      AND last_used_at > now() - make_interval(days => ${DYNAMIC_CLIENT_DAYS})`;
  return row?.n ?? 0;
}

/**
 * Records the network from which a client registered itself, for the limit of clients per network.
 */
export async function setClientOrigin(
  tx: EntityManager,
  clientId: string,
  address: string,
): Promise<void> {
  await sql(tx)`
    UPDATE oauth_clients SET registered_from = network_of(${address}::inet) WHERE id = ${clientId}`;
}

/**
 * Removes the oldest clients to which no user has consented, until their number is within a limit.
 * A client whose row is locked now is left out, because a user may be consenting to it.
 *
 * @returns the ids of the removed clients
 */
export async function trimDynamicClients(tx: EntityManager, limit: number): Promise<string[]> {
  const removed = await sql<{ id: string }>(tx)`
    WITH beyond AS (
      SELECT greatest(count(*) - ${limit}::bigint, 0) AS n FROM oauth_clients
      WHERE kind = 'dynamic' AND consented_at IS NULL
    ), oldest AS MATERIALIZED (
      SELECT id FROM oauth_clients WHERE kind = 'dynamic' AND consented_at IS NULL
      ORDER BY created_at, id LIMIT (SELECT n FROM beyond) FOR UPDATE SKIP LOCKED
    )
    DELETE FROM oauth_clients c USING oldest o WHERE c.id = o.id RETURNING c.id`;
  return removed.map(({ id }) => id);
}

/**
 * Records that a user consents to a client that registered itself, or to an application of the
 * user's organization. It records nothing for any other client, or if the user or the client has
 * just been removed. The row of the user is locked before that of the client, as in all other
 * transactions, so that no two deadlock.
 *
 * @param consent the accepted scopes and claims, with the redirect URI and the time of the consent
 *   page
 */
export async function recordConsent(
  tx: EntityManager,
  userId: string,
  clientId: string,
  { scopes, claims, redirectUri, shownAt }: Consent = NOTHING_MORE,
): Promise<void> {
  // If the redirect URIs are the same as at an earlier consent, its scopes and claims stay valid
  // together with the new ones. If the registration was changed after the page was shown, the
  // consent does not cover the new URIs.
  const recorded = await sql<{ client_id: string }>(tx)`
    INSERT INTO oauth_consents AS o (user_id, client_id, scopes, claims, redirect_uris)
    SELECT u.id, c.id, ${scopes}::text[], ${claims}::text[],
           CASE WHEN c.updated_at > to_timestamp(${shownAt}) THEN ARRAY[${redirectUri}::text]
                ELSE ${redirectUrisOf(fragment`c.metadata`)} END
    FROM users u CROSS JOIN oauth_clients c
    WHERE u.id = ${userId} AND c.id = ${clientId}
      AND (c.kind = 'dynamic' OR (c.kind = 'application' AND c.org_id = u.org_id))
    FOR KEY SHARE OF u, c
    ON CONFLICT (user_id, client_id) DO UPDATE
    SET consented_at = now(), redirect_uris = EXCLUDED.redirect_uris,
        scopes = ARRAY(SELECT unnest(EXCLUDED.scopes) UNION SELECT unnest(o.scopes) WHERE o.redirect_uris = EXCLUDED.redirect_uris),
        claims = ARRAY(SELECT unnest(EXCLUDED.claims) UNION SELECT unnest(o.claims) WHERE o.redirect_uris = EXCLUDED.redirect_uris)
    RETURNING client_id`;
  if (recorded.length === 0) return;
  await sql(tx)`
    UPDATE oauth_clients SET consented_at = now()
    WHERE id = ${clientId} AND kind = 'dynamic' AND consented_at IS NULL`;
}

/**
 * Finds the scopes and claims to which a user consented at an application, and the redirect URIs
 * that the application had then. Returns undefined without a consent.
 */
export async function findConsent(
  tx: EntityManager,
  userId: string,
  clientId: string,
): Promise<RecordedConsent | undefined> {
  const [found] = await sql<RecordedConsent>(tx)`
    SELECT scopes, claims, redirect_uris AS "redirectUris" FROM oauth_consents
    WHERE user_id = ${userId} AND client_id = ${clientId}`;
  return found;
}

/**
 * Returns true if a user consented to a client after the last change of its registration. A change
 * ends earlier consents.
 */
export async function hasConsent(
  tx: EntityManager,
  userId: string,
  clientId: string,
): Promise<boolean> {
  const [found] = await sql<{ client_id: string }>(tx)`
    SELECT o.client_id FROM oauth_consents o JOIN oauth_clients c ON c.id = o.client_id
    WHERE o.user_id = ${userId} AND o.client_id = ${clientId} AND o.consented_at > c.updated_at`;
  return found !== undefined;
}
