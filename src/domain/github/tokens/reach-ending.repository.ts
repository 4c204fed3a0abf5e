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
import { queueTokens } from './ending-tokens.repository.js';
import type { TokenRevoker } from './token-revoker.service.js';

/** The lowest possible id, to start a list before every other id. */
const LOWEST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * The SQL that reads the recorded touches of security keys in the session in which a token `c` was
 * issued.
 */
const TOUCHES = fragment`(SELECT s.touches FROM sessions s WHERE s.id = c.session_id)`;

/**
 * The SQL condition that a token `c` is not being revoked already, so that its end is not recorded
 * twice. A token that is in the queue only to be revoked at the end of its session counts as valid.
 */
const IS_HELD = fragment`c.expires_at > now() AND c.attempts = 0 AND c.next_attempt_at IS DISTINCT FROM '-infinity'`;

/**
 * Queues the GitHub tokens of people who are not admitted by the access rule of the installation
 * any more, so that GitHub revokes the tokens.
 */
export class GitHubReachEnding implements ReachEnding {
  readonly kinds = ['github_installation'] as const;

  constructor(private readonly revoker: Pick<TokenRevoker, 'wakeAfter'>) {}

  async endBatch(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches> {
    const refused = isRefusedNow(ending, fragment`c.user_id`, TOUCHES);
    const after = ending.place === '' ? LOWEST_ID : ending.place;
    const rows = await sql<{ id: string; userId: string; is_refused: boolean }>(tx)`
      SELECT c.id, c.user_id AS "userId", ${refused} AS is_refused
      FROM github_tokens c
      WHERE c.installation_id = ${ending.installationId} AND c.id > ${after}::uuid AND ${IS_HELD}
        AND ${isAmong(ending, fragment`c.user_id`)}
      ORDER BY c.id LIMIT ${most}`;
    const found = rows.filter((row) => row.is_refused);
    await lockUsers(
      tx,
      found.map(({ userId }) => userId),
    );
    const ids = found.map(({ id }) => id);
    const still = await sql<{ id: string; userId: string }>(tx)`
      SELECT c.id, c.user_id AS "userId" FROM github_tokens c WHERE c.id = ANY (${ids}::uuid[]) AND ${IS_HELD} AND ${refused}`;
    const revokedBy = ending.actorId ?? (ending.scimTokenId === null ? 'organization' : 'scim');
    const cause = { reason: `access ended: ${ending.targetName}`, revokedBy };
    await queueTokens(tx, fragment`id = ANY (${still.map(({ id }) => id)}::uuid[])`, cause);
    if (still.length > 0) this.revoker.wakeAfter(tx);
    const next = rows.length < most ? undefined : rows.at(-1)?.id;
    return {
      ended: byPerson(still, 'github_tokens'),
      people: rows.map(({ userId }) => userId),
      next,
    };
  }

  async countHeld(
    tx: EntityManager,
    targetId: string,
    losers: Losers,
  ): Promise<RevokedCounts | undefined> {
    const [row] = await sql<{ held: number; tokens: number }>(tx)`
      SELECT count(*)::int AS held, count(*) FILTER (WHERE ${loses(losers, fragment`c.user_id`, TOUCHES)})::int AS tokens
      FROM (
        SELECT c.user_id, c.session_id
        FROM access_targets t JOIN github_tokens c ON c.installation_id = t.installation_id
        WHERE t.id = ${targetId} AND ${mayLose(losers, fragment`c.user_id`)} AND ${IS_HELD}
        LIMIT ${PREVIEW_BOUNDS.examined + 1}
      ) c`;
    if (row && row.held > PREVIEW_BOUNDS.examined) return undefined;
    return { github_tokens: row?.tokens ?? 0 };
  }
}
