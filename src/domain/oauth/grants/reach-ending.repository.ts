import {
  isAmong,
  isRefusedNow,
  loses,
  mayLose,
} from '#domain/access-revocation/ended-reach/endings.repository.js';
import {
  PREVIEW_BOUNDS,
  NOTHING_HELD,
  byPerson,
  type EndedReaches,
  type Ending,
  type Losers,
  type ReachEnding,
} from '#domain/access-revocation/ended-reach/reach-ending.js';
import { lockUsers } from '#domain/access/issuance/lock-order.repository.js';
import { withoutZeros, type RevokedCounts } from '#domain/access-revocation/revocable.js';
import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

interface Row {
  place: string;
  user_id: string;
  is_refused: boolean;
}

/**
 * The prefix of a `place` that names a token. A `place` is the hexadecimal id of the grant or token
 * after which the next batch begins; a grant has no prefix. All grants end before the tokens.
 */
const TOKENS = 'tokens:';

/** The SQL that reads the recorded touches of security keys in the session of a grant `g`. */
const TOUCHES = fragment`(SELECT s.touches FROM sessions s WHERE s.id = g.session_id)`;

/**
 * The SQL that reads the recorded touches of security keys in the session of a token `a` for a
 * cluster.
 */
const TOUCHES_OF_TOKEN = fragment`(SELECT s.touches FROM oauth_grants g JOIN sessions s ON s.id = g.session_id WHERE g.id = a.grant_id)`;

/**
 * Ends the access of people to an application or cluster that does not admit them any more. It
 * deletes their grants to an application, with the codes and tokens of these grants, or their
 * tokens for a cluster.
 */
export const GRANT_ENDING: ReachEnding = {
  kinds: ['application'],

  async endBatch(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches> {
    if (ending.clientId === null) return NOTHING_HELD;
    return ending.place.startsWith(TOKENS)
      ? endTokens(tx, ending, most)
      : endGrants(tx, ending, most);
  },

  async countHeld(
    tx: EntityManager,
    targetId: string,
    losers: Losers,
  ): Promise<RevokedCounts | undefined> {
    const [row] = await sql<{ held: number; grants: number; tokens: number }>(tx)`
      SELECT greatest(g.held, a.held) AS held, g.grants, a.tokens
      FROM access_targets t CROSS JOIN LATERAL (
        SELECT count(*)::int AS held, count(*) FILTER (WHERE ${loses(losers, fragment`g.user_id`, TOUCHES)})::int AS grants
        FROM (
          SELECT g.user_id, g.session_id FROM oauth_grants g
          WHERE g.client_id = t.client_id AND ${mayLose(losers, fragment`g.user_id`)} AND g.expires_at > now()
          LIMIT ${PREVIEW_BOUNDS.examined + 1}
        ) g
      ) g CROSS JOIN LATERAL (
        SELECT count(*)::int AS held, count(*) FILTER (WHERE ${loses(losers, fragment`a.user_id`, TOUCHES_OF_TOKEN)})::int AS tokens
        FROM (
          SELECT a.user_id, a.grant_id FROM oauth_artifacts a
          WHERE a.application_id = t.client_id AND a.user_id IS NOT NULL
            AND ${mayLose(losers, fragment`a.user_id`)} AND a.expires_at > now()
          LIMIT ${PREVIEW_BOUNDS.examined + 1}
        ) a
      ) a WHERE t.id = ${targetId}`;
    if (row && row.held > PREVIEW_BOUNDS.examined) return undefined;
    return withoutZeros({ grants: row?.grants ?? 0, tokens: row?.tokens ?? 0 });
  },
};

async function endGrants(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches> {
  // The target is identified by the client, because an application that moved to another
  // organization has a new row in `access_targets`. The rule of the new row then decides.
  const present = fragment`t.client_id = ${ending.clientId}`;
  const refused = isRefusedNow(ending, fragment`g.user_id`, TOUCHES, { present });
  const rows = await sql<Row>(tx)`
    SELECT encode(g.id, 'hex') AS place, g.user_id, ${refused} AS is_refused
    FROM oauth_grants g
    WHERE g.client_id = ${ending.clientId} AND g.id > decode(${ending.place}, 'hex') AND ${isAmong(ending, fragment`g.user_id`)}
    ORDER BY g.id LIMIT ${most}`;
  const ids = await lockRefused(tx, rows);
  const ended = await sql<{ userId: string }>(tx)`
    DELETE FROM oauth_grants g
    WHERE g.id IN (SELECT decode(x, 'hex') FROM unnest(${ids}::text[]) x) AND ${refused}
    RETURNING g.user_id AS "userId"`;
  return {
    ended: byPerson(ended, 'grants'),
    people: rows.map((row) => row.user_id),
    next: rows.length < most ? TOKENS : rows.at(-1)?.place,
  };
}

async function endTokens(tx: EntityManager, ending: Ending, most: number): Promise<EndedReaches> {
  const after = ending.place.slice(TOKENS.length);
  const refused = isRefusedNow(ending, fragment`a.user_id`, TOUCHES_OF_TOKEN);
  const ofCluster: SqlFragment = fragment`a.application_id = ${ending.clientId}`;
  const rows = await sql<Row>(tx)`
    SELECT encode(a.id, 'hex') AS place, a.user_id, ${refused} AS is_refused
    FROM oauth_artifacts a
    WHERE ${ofCluster} AND a.user_id IS NOT NULL AND a.id > decode(${after}, 'hex') AND ${isAmong(ending, fragment`a.user_id`)}
    ORDER BY a.id LIMIT ${most}`;
  const ids = await lockRefused(tx, rows);
  const ended = await sql<{ userId: string }>(tx)`
    DELETE FROM oauth_artifacts a
    WHERE ${ofCluster} AND a.id IN (SELECT decode(x, 'hex') FROM unnest(${ids}::text[]) x) AND ${refused}
    RETURNING a.user_id AS "userId"`;
  return {
    ended: byPerson(ended, 'tokens'),
    people: rows.map((row) => row.user_id),
    next: rows.length < most ? undefined : `${TOKENS}${rows.at(-1)?.place}`,
  };
}

/**
 * Locks the users of the grants or tokens that end, because every transaction locks a user before
 * other rows of the user. Returns the ids of the grants or tokens.
 */
async function lockRefused(tx: EntityManager, rows: readonly Row[]): Promise<string[]> {
  const refused = rows.filter((row) => row.is_refused);
  await lockUsers(
    tx,
    refused.map((row) => row.user_id),
  );
  return refused.map(({ place }) => place);
}
