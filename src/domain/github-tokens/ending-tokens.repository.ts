import { sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** Queues every token of an installation that an organization gave up. Returns their number. */
export async function queueInstallation(
  tx: EntityManager,
  installationId: number,
  revokedBy: string,
): Promise<number> {
  const queued = await sql<{ id: string }>(tx)`
    UPDATE github_tokens
    SET next_attempt_at = CASE WHEN attempts = 0 THEN '-infinity' ELSE next_attempt_at END,
        revoke_reason = 'installation unlinked', revoked_by = ${revokedBy}
    WHERE id IN (SELECT id FROM github_tokens WHERE installation_id = ${installationId} AND expires_at > now()
                 ORDER BY id FOR UPDATE)
    RETURNING id`;
  return queued.length;
}

/** Forgets the tokens of an installation that GitHub deleted: GitHub has ended them itself. */
export async function forgetInstallation(tx: EntityManager, installationId: number): Promise<void> {
  await sql(tx)`DELETE FROM github_tokens WHERE installation_id = ${installationId}`;
}
