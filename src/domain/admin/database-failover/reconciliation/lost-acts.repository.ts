import type { NotedSecret } from '#domain/audit/noted-act.js';
import { newUuid } from '#platform/clock/random.js';
import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** Returns those of the given ids of audit events that the database server lacks. */
export async function findLost(
  tx: EntityManager,
  auditIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await sql<{ id: string }>(tx)`
    SELECT k.id FROM unnest(${auditIds}::uuid[]) AS k (id)
    WHERE NOT EXISTS (SELECT FROM audit_events e WHERE e.id = k.id)`;
  return new Set(rows.map(({ id }) => id));
}

/**
 * Claims for the caller the acts of an audit event that the database lost, so that only one process
 * repeats them. Returns true for exactly one caller, because the id of the event is the primary key
 * of the claims. Returns false if the database has the event. If the claim is rolled back, the next
 * caller can claim the acts.
 */
export async function claimLost(tx: EntityManager, auditId: string): Promise<boolean> {
  const claimed = await sql<{ audit_id: string }>(tx)`
    INSERT INTO redone_acts (audit_id)
    SELECT ${auditId}::uuid WHERE NOT EXISTS (SELECT FROM audit_events WHERE id = ${auditId})
    ON CONFLICT (audit_id) DO NOTHING
    RETURNING audit_id`;
  return claimed.length === 1;
}

/**
 * Adds a secret to the list that the admins of an organization must confirm after a loss of
 * commits. The list may already have the secret as one whose act was not lost. If the act turns out
 * to be lost, the secret must be confirmed again.
 */
export async function listSecret(
  tx: EntityManager,
  { kind, secret, secretId, orgId, clientId, name }: NotedSecret,
  { isLost, at }: { readonly isLost: boolean; readonly at: Date },
): Promise<void> {
  await sql(tx)`
    INSERT INTO secrets_to_confirm AS s (id, org_id, secret, secret_id, client_id, name, act, is_lost, happened_at)
    VALUES (${newUuid()}, ${orgId}, ${secret}, ${secretId}, ${clientId ?? null}, ${name},
            ${kind === 'secret_made' ? 'made' : 'ended'}, ${isLost}, ${at})
    ON CONFLICT (secret, secret_id, act) DO UPDATE
    SET is_lost = true, listed_at = now(), confirmed_at = NULL, confirmed_by = NULL
    WHERE EXCLUDED.is_lost AND NOT s.is_lost`;
}

/**
 * Adds the secrets that were made or ended within the last hour, according to the audit log of this
 * server, to the list for admins. The database has these acts, so they were not lost. An API token
 * that ended with the access of its maker is not added, because an admin sees it on the page of the
 * tokens.
 *
 * @returns the number of the secrets
 */
export async function listKeptSecrets(tx: EntityManager): Promise<number> {
  const listed = await sql<{ id: string }>(tx)`
    INSERT INTO secrets_to_confirm (id, org_id, secret, secret_id, client_id, name, act, is_lost, happened_at)
    SELECT gen_random_uuid(), e.org_id, k.secret, (e.details ->> k.id_in)::uuid, e.details ->> 'client_id',
           coalesce(t.description, a.name, e.client_name, ''), k.act, false, e.created_at
    FROM audit_events e
    JOIN (VALUES ('scim_token_created', 'scim_token', 'made', 'scim_token_id'),
                 ('scim_token_revoked', 'scim_token', 'ended', 'scim_token_id'),
                 ('api_token_created', 'api_token', 'made', 'api_token_id'),
                 ('api_token_rotated', 'api_token', 'made', 'api_token_id'),
                 ('api_token_revoked', 'api_token', 'ended', 'api_token_id'),
                 ('oauth_secret_added', 'client_secret', 'made', 'secret_id'),
                 ('oauth_secret_revoked', 'client_secret', 'ended', 'secret_id')) AS k (type, secret, act, id_in)
      ON k.type = e.type
    LEFT JOIN scim_tokens t ON t.id::text = e.details ->> 'scim_token_id'
    LEFT JOIN api_tokens a ON a.id::text = e.details ->> 'api_token_id'
    WHERE e.class = 'admin' AND e.created_at > now() - interval '1 hour' AND e.org_id IS NOT NULL
      AND e.details ->> k.id_in IS NOT NULL
      AND NOT (k.secret = 'api_token' AND e.details ? 'revoked_by')
    ON CONFLICT (secret, secret_id, act) DO NOTHING
    RETURNING id`;
  return listed.length;
}

/**
 * Returns true if a user has a security key. The caller has removed another key of the user again,
 * because the database had lost the removal.
 */
export async function hasKeyLeft(tx: EntityManager, userId: string): Promise<boolean> {
  const found = await sql<{ id: string }>(tx)`
    SELECT id FROM authenticators WHERE user_id = ${userId} LIMIT 1`;
  return found.length === 1;
}
