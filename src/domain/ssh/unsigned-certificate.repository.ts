import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { recordAudit } from '#domain/audit/audit.repository.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * Revokes a certificate that was recorded but not signed, so that its record never counts as valid.
 * The audit log records that no client got the certificate. If a key service made the signature
 * after all, hosts refuse the certificate.
 */
export async function revokeUnsigned(
  tx: EntityManager,
  serial: bigint,
  origin: AuditOrigin,
): Promise<void> {
  const withheld = recordAudit(
    {
      type: 'ssh_credential_withheld',
      actorId: fragment`user_id`,
      subjectId: fragment`user_id`,
      orgId: fragment`org_id`,
      origin,
      details: fragment`jsonb_build_object('serial', serial::text, 'reason', 'not signed')`,
    },
    fragment`FROM revoked`,
  );
  await sql(tx)`
    WITH revoked AS (
      UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'not signed', revoked_by = 'svc'
      WHERE serial = ${serial.toString()}::bigint AND revoked_at IS NULL
      RETURNING serial, user_id, org_id
    ) ${withheld}`;
}
