/**
 * The end of clients with too many grants for one statement. The grants stop to count at once, and
 * a background worker deletes their rows in batches.
 */

import { fragment, joined, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/** A client whose rows the background worker deletes. */
export interface EndedClient {
  readonly id: string;
  readonly isRemoved: boolean;
  /**
   * The time from which grants and tokens of the client count again; `infinity` for a removed
   * client. It is the text of PostgreSQL, because a `Date` has no microseconds.
   */
  readonly endedBefore: string;
}

const ofClient = ({ id }: EndedClient) => fragment`t.client_id = ${id}`;
const madeBefore = (client: EndedClient) =>
  fragment`${ofClient(client)} AND t.created_at <= ${client.endedBefore}::timestamptz`;

/**
 * The tables with rows that end with a client, in the order in which the worker deletes the rows.
 * `staysWithClient` marks the rows that stay if the client stays and only its tokens have ended.
 */
const TABLES = {
  grants: {
    table: fragment`oauth_grants`,
    of: madeBefore,
    staysWithClient: false,
  },
  artifacts: {
    table: fragment`oauth_artifacts`,
    of: madeBefore,
    staysWithClient: false,
  },
  clusterTokens: {
    table: fragment`oauth_artifacts`,
    of: ({ id, endedBefore }: EndedClient) =>
      fragment`t.application_id = ${id} AND t.created_at <= ${endedBefore}::timestamptz`,
    staysWithClient: false,
  },
  consents: {
    table: fragment`oauth_consents`,
    of: ofClient,
    staysWithClient: true,
  },
  notices: {
    table: fragment`logout_notices`,
    of: ofClient,
    staysWithClient: true,
  },
  sessions: {
    table: fragment`sessions`,
    of: ofClient,
    staysWithClient: true,
  },
} as const;

/** The name of a table with rows that end with a client. */
export type TableOfEnded = keyof typeof TABLES;

/** Lists the tables whose rows the worker deletes for an ended client. */
export function tablesOfEnded({ isRemoved }: EndedClient): TableOfEnded[] {
  const names = Object.keys(TABLES) as TableOfEnded[];
  return names.filter((name) => isRemoved || !TABLES[name].staysWithClient);
}

/**
 * Counts the rows that one statement deletes with a client, with the grants below its own, which
 * token exchanges made. Each count ends just beyond a limit, so that the statements are fast for a
 * client of any size.
 */
export async function countRows(
  tx: EntityManager,
  clientId: string,
  limit: number,
): Promise<number> {
  const counted = (rows: SqlFragment) =>
    fragment`(SELECT count(*) FROM (SELECT ${rows} LIMIT ${limit + 1}) x)`;
  const [own] = await sql<{ n: number }>(tx)`
    SELECT (${counted(fragment`FROM oauth_grants WHERE client_id = ${clientId}`)}
         + ${counted(fragment`FROM oauth_artifacts WHERE client_id = ${clientId}`)}
         + ${counted(fragment`FROM oauth_artifacts WHERE application_id = ${clientId}`)}
         + ${counted(fragment`FROM oauth_consents WHERE client_id = ${clientId}`)}
         + ${counted(fragment`FROM logout_notices WHERE client_id = ${clientId}`)})::int AS n`;
  const ofItself = own?.n ?? 0;
  if (ofItself > limit) return ofItself;
  const [below] = await sql<{ n: number }>(tx)`
    WITH RECURSIVE below AS (
      SELECT c.id FROM oauth_grants p JOIN oauth_grants c ON c.parent_id = p.id WHERE p.client_id = ${clientId}
      UNION ALL
      SELECT c.id FROM below b JOIN oauth_grants c ON c.parent_id = b.id
    )
    SELECT ${counted(fragment`FROM below b LEFT JOIN oauth_artifacts a ON a.grant_id = b.id`)}::int AS n`;
  return ofItself + (below?.n ?? 0);
}

/**
 * Removes a client of any size. Its secrets, its access rule and its permission to receive signals
 * are deleted, and nothing that was issued to it counts any more. The row stays without an owner
 * until {@link settleEnded} deletes it. The lock makes a statement that issues something to the
 * client wait, and that statement then finds the client removed. Returns false if there is no such
 * client.
 */
export async function retireClient(tx: EntityManager, clientId: string): Promise<boolean> {
  const locked = await sql<{ id: string }>(tx)`
    SELECT id FROM oauth_clients WHERE id = ${clientId} AND kind <> 'removed' FOR UPDATE`;
  if (locked.length === 0) return false;
  await sql(tx)`DELETE FROM oauth_client_secrets WHERE client_id = ${clientId}`;
  await sql(tx)`DELETE FROM signal_receivers WHERE client_id = ${clientId}`;
  await sql(tx)`
    UPDATE oauth_clients
    SET kind = 'removed', metadata = '{}', owner_id = NULL, org_id = NULL, resource = NULL, registered_from = NULL,
        approved_at = NULL, approved_by = NULL, approved_uris = NULL, ended_before = 'infinity'
    WHERE id = ${clientId}`;
  await noteEnding(tx, clientId);
  return true;
}

/**
 * Ends everything that was issued to a client until now; the client stays. The time is read after
 * the lock, so that it is later than every grant that the end must include. It is never earlier
 * than the newest row or than an earlier end, because the clock of the database may go back, such
 * as at a failover to another server.
 */
export async function endIssuedBefore(tx: EntityManager, clientId: string): Promise<void> {
  await sql(tx)`SELECT id FROM oauth_clients WHERE id = ${clientId} FOR UPDATE`;
  await sql(tx)`
    UPDATE oauth_clients
    SET ended_before = greatest(
      clock_timestamp(), ended_before, (SELECT max(created_at) FROM oauth_grants WHERE client_id = ${clientId}),
      (SELECT max(created_at) FROM oauth_artifacts WHERE client_id = ${clientId}),
      (SELECT max(created_at) FROM oauth_artifacts WHERE application_id = ${clientId}))
    WHERE id = ${clientId} AND kind <> 'removed'`;
  await noteEnding(tx, clientId);
}

async function noteEnding(tx: EntityManager, clientId: string): Promise<void> {
  await sql(tx)`
    INSERT INTO oauth_ending_clients (client_id) SELECT id FROM oauth_clients WHERE id = ${clientId}
    ON CONFLICT DO NOTHING`;
}

/** Lists the clients that have ended, and whose rows may not all be deleted yet. */
export async function listEnded(tx: EntityManager): Promise<readonly EndedClient[]> {
  return sql<EndedClient>(tx)`
    SELECT c.id, c.kind = 'removed' AS "isRemoved", c.ended_before::text AS "endedBefore"
    FROM oauth_ending_clients e JOIN oauth_clients c ON c.id = e.client_id
    WHERE c.ended_before IS NOT NULL ORDER BY c.id`;
}

/**
 * Deletes a batch of the rows of an ended client in one table. It skips rows that another
 * transaction has locked, so that it waits for no lock.
 *
 * @returns the number of deleted rows
 */
export async function deleteOfEnded(
  tx: EntityManager,
  client: EndedClient,
  name: TableOfEnded,
  most: number,
): Promise<number> {
  const { table, of } = TABLES[name];
  const [row] = await sql<{ n: number }>(tx)`
    WITH ended AS MATERIALIZED (
      SELECT t.ctid FROM ${table} t WHERE ${of(client)} LIMIT ${most} FOR UPDATE SKIP LOCKED
    ), gone AS (
      DELETE FROM ${table} t WHERE t.ctid = ANY (ARRAY(SELECT ctid FROM ended)) RETURNING 1
    )
    SELECT count(*)::int AS n FROM gone`;
  return row?.n ?? 0;
}

/**
 * Finishes the end of a client once its rows are deleted. A removed client is deleted, and what is
 * issued to another client needs no check any more. If a row is left, because another transaction
 * had locked it, nothing happens, and the worker tries again later. So does a client whose tokens
 * were ended once more meanwhile.
 */
export async function settleEnded(tx: EntityManager, client: EndedClient): Promise<void> {
  const { id, isRemoved, endedBefore } = client;
  const left = tablesOfEnded(client).map((name) => {
    const { table, of } = TABLES[name];
    return fragment`NOT EXISTS (SELECT FROM ${table} t WHERE ${of(client)})`;
  });
  const isEmpty = joined(left, ' AND ');
  if (isRemoved) {
    await sql(tx)`DELETE FROM oauth_clients WHERE id = ${id} AND kind = 'removed' AND ${isEmpty}`;
    return;
  }
  await sql(tx)`
    WITH settled AS (
      UPDATE oauth_clients SET ended_before = NULL
      WHERE id = ${id} AND ended_before = ${endedBefore}::timestamptz AND ${isEmpty} RETURNING id
    )
    DELETE FROM oauth_ending_clients e USING settled s WHERE e.client_id = s.id`;
}
