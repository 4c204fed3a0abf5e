import { IN_RANGE_SINCE } from '#domain/ssh/serials/revoked-ranges.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The profile of a user, and the lists about the user that are short enough for one read. No field
 * holds a secret. Groups of SCIM are left out, because the service shows memberships to SCIM
 * clients only.
 */
export interface HeldRecords {
  readonly profile: Readonly<Record<string, unknown>>;
  readonly keys: readonly unknown[];
  readonly sessions: readonly unknown[];
  readonly registered_applications: readonly unknown[];
  readonly attested_ssh_keys: readonly unknown[];
  readonly github_tokens: readonly unknown[];
  readonly application_sign_ins: readonly unknown[];
  readonly unread_notices: readonly unknown[];
}

/**
 * The most rows of each list. A user cannot have so many keys or applications, so these lists are
 * complete. Of a longer list of other records only the newest are read.
 */
const MOST = 1000;

/**
 * Reads the records of a user for an export. Returns undefined if the user was removed before the
 * read.
 */
export async function readHeldRecords(
  tx: EntityManager,
  userId: string,
): Promise<HeldRecords | undefined> {
  const [profile] = await sql<{ profile: Readonly<Record<string, unknown>> }>(tx)`
    SELECT jsonb_build_object(
      'id', u.id, 'email', u.email, 'name', u.name, 'given_name', u.given_name, 'family_name', u.family_name,
      'user_name', u.user_name, 'external_id', u.external_id, 'attributes', u.attributes,
      'is_org_admin', u.is_org_admin, 'active', u.active, 'scim_managed', u.scim_managed,
      'created_at', u.created_at, 'updated_at', u.updated_at,
      'reach_list_changed_at', (SELECT l.changed_at FROM own_reach_lists l WHERE l.user_id = u.id),
      'organization', CASE WHEN o.id IS NULL THEN NULL ELSE jsonb_build_object('id', o.id, 'name', o.name) END,
      'identities', (SELECT coalesce(jsonb_agg(jsonb_build_object('issuer', i.issuer, 'tenant', i.tenant,
          'subject', i.subject, 'created_at', i.created_at) ORDER BY i.created_at), '[]')
        FROM identities i WHERE i.user_id = u.id)
    ) AS profile
    FROM users u LEFT JOIN organizations o ON o.id = u.org_id WHERE u.id = ${userId}`;
  if (!profile) return undefined;
  return {
    profile: profile.profile,
    keys: await sql(tx)`
      SELECT id, name, aaguid, attestation, user_verification, transports, encode(credential_id, 'hex') AS credential_id,
             sign_count::text, created_at, last_used_at
      FROM authenticators WHERE user_id = ${userId} ORDER BY created_at, id LIMIT ${MOST}`,
    sessions: await sql(tx)`
      SELECT id, level, client_id, authenticator_id, amr, acr, auth_time, host(ip) AS address, user_agent AS device,
             created_at, expires_at
      FROM sessions WHERE user_id = ${userId} AND expires_at > now() ORDER BY created_at DESC, id LIMIT ${MOST}`,
    registered_applications: await sql(tx)`
      SELECT id, metadata ->> 'client_name' AS name, created_at, updated_at
      FROM oauth_clients WHERE owner_id = ${userId} ORDER BY created_at, id LIMIT ${MOST}`,
    attested_ssh_keys: await sql(tx)`
      SELECT public_key AS fingerprint, aaguid, model, verify_required, attested_at
      FROM ssh_attested_keys WHERE user_id = ${userId} ORDER BY attested_at DESC, public_key LIMIT ${MOST}`,
    github_tokens: await sql(tx)`
      SELECT id, owner, repositories, permissions, issued_at, expires_at
      FROM github_tokens WHERE user_id = ${userId} ORDER BY issued_at DESC, id LIMIT ${MOST}`,
    application_sign_ins: await sql(tx)`
      SELECT client_id, sid, session_key AS key_id, last_at
      FROM client_sign_ins WHERE user_id = ${userId} ORDER BY last_at DESC, sid, client_id LIMIT ${MOST}`,
    unread_notices: await sql(tx)`
      SELECT type, name, created_at FROM account_notices WHERE user_id = ${userId} ORDER BY id DESC LIMIT ${MOST}`,
  };
}

/**
 * An SSH certificate of a user, for an export. The rows have further columns, which the export
 * writes as they are.
 */
export interface HeldCertificate {
  readonly serial: string;
}

/**
 * Lists the SSH certificates of a user, the newest first: those with a serial below `below`, or the
 * first ones if it is undefined. It reads the table of certificates and not the audit log. The
 * table keeps a certificate longer than the log keeps the event of its issuance. Revoked and other
 * certificates are read separately, because each group has its own index.
 */
export function listHeldCertificates(
  tx: EntityManager,
  userId: string,
  { below, limit }: { readonly below: string | undefined; readonly limit: number },
): Promise<HeldCertificate[]> {
  const last = below ?? '9223372036854775807';
  const range = fragment`AND serial < ${last}::bigint ORDER BY serial DESC LIMIT ${limit}`;
  return sql<HeldCertificate>(tx)`
    SELECT c.serial::text, key_id, principals, public_key, ca_fingerprint, session_id, authenticator_id, attested, aaguid,
           issued_at, valid_after, valid_before, coalesce(revoked_at, in_range_since) AS revoked_at,
           coalesce(revoke_reason, CASE WHEN in_range_since IS NOT NULL THEN 'database lost commits' END) AS revoke_reason
    FROM (SELECT c.*, ${IN_RANGE_SINCE} AS in_range_since FROM ((SELECT * FROM ssh_certificates WHERE user_id = ${userId} AND revoked_at IS NULL ${range})
          UNION ALL
          (SELECT * FROM ssh_certificates WHERE user_id = ${userId} AND revoked_at IS NOT NULL ${range})) c) c
    ORDER BY c.serial DESC LIMIT ${limit}`;
}
