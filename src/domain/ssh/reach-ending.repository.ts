import {
  isAmong,
  isRefusedNow,
  loses,
  mayLose,
} from '#domain/access-revocation/ended-reach/endings.repository.js';
import {
  byPerson,
  PREVIEW_BOUNDS,
  type EndedReaches,
  type Ending,
  type Losers,
  type ReachEnding,
} from '#domain/access-revocation/ended-reach/reach-ending.js';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import { fragment, sql } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * The SQL subquery for the touches of security keys in the session in which a certificate `c` was
 * issued; NULL if the session has ended.
 */
const TOUCHES = fragment`(SELECT s.touches FROM sessions s WHERE s.id = c.session_id)`;

/**
 * The time at which a certificate `c` expires. It is signed into the certificate and never changes.
 */
const ENDS = fragment`c.valid_before`;

/**
 * Revokes certificates with principals of a group of hosts. It does so if the group does not admit
 * the person any more, or does not have one of the principals any more. After a change of the
 * conditions it also revokes a certificate that ends later than a new one would.
 */
export const CERTIFICATE_ENDING: ReachEnding = {
  kinds: ['host_group'],

  async endBatch(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches> {
    const refused = fragment`(${isRefusedNow(ending, fragment`c.user_id`, TOUCHES, { ends: ENDS })}
      OR NOT c.principals <@ coalesce((SELECT t.principals FROM access_targets t WHERE t.id = c.target_id), '{}'))`;
    const after = ending.place === '' ? '0' : ending.place;
    const rows = await sql<{ serial: string; user_id: string; is_refused: boolean }>(tx)`
      SELECT c.serial, c.user_id, ${refused} AS is_refused
      FROM ssh_certificate_groups c
      WHERE c.target_id = ${ending.targetId} AND c.serial > ${after}::bigint AND ${isAmong(ending, fragment`c.user_id`)}
      ORDER BY c.serial LIMIT ${most}`;
    const people = rows.map((row) => row.user_id);
    const next = rows.length < most ? undefined : rows.at(-1)?.serial;
    const found = rows.filter((row) => row.is_refused);
    if (found.length === 0) return { ended: [], people, next };
    await lockUsers(
      tx,
      found.map((row) => row.user_id),
    );
    const reason = `access ended: ${ending.targetName}`;
    const revokedBy = ending.actorId ?? (ending.scimTokenId === null ? 'organization' : 'scim');
    // `MATERIALIZED` makes PostgreSQL check each certificate once. A plan from a time at which the
    // table was almost empty could otherwise check it again for each other certificate.
    const ended = await sql<{ userId: string; is_valid: boolean }>(tx)`
      WITH refused AS MATERIALIZED (
        SELECT c.serial FROM ssh_certificate_groups c
        WHERE c.target_id = ${ending.targetId} AND c.serial = ANY (${found.map(({ serial }) => serial)}::bigint[]) AND ${refused}
      )
      UPDATE ssh_certificates x SET revoked_at = now(), revoke_reason = ${reason}, revoked_by = ${revokedBy}
      FROM refused c WHERE x.serial = c.serial AND x.revoked_at IS NULL
      RETURNING x.user_id AS "userId", x.valid_before > now() AS is_valid`;
    return {
      ended: byPerson(
        ended.filter((certificate) => certificate.is_valid),
        'certificates',
      ),
      people,
      next,
    };
  },

  async countHeld(
    tx: EntityManager,
    targetId: string,
    losers: Losers,
  ): Promise<RevokedCounts | undefined> {
    const [row] = await sql<{ held: number; certificates: number }>(tx)`
      SELECT count(*)::int AS held, count(*) FILTER (WHERE ${loses(losers, fragment`c.user_id`, TOUCHES, ENDS)})::int AS certificates
      FROM (
        SELECT c.user_id, c.session_id, c.valid_before
        FROM ssh_certificate_groups c JOIN ssh_certificates x ON x.serial = c.serial
        WHERE c.target_id = ${targetId} AND ${mayLose(losers, fragment`c.user_id`)}
          AND x.revoked_at IS NULL AND x.valid_before > now()
        LIMIT ${PREVIEW_BOUNDS.examined + 1}
      ) c`;
    if (row && row.held > PREVIEW_BOUNDS.examined) return undefined;
    return { certificates: row?.certificates ?? 0 };
  },
};
