import type { Logger } from '@nestjs/common';
import type { EndedBatch, RevokedCounts } from '#domain/access-revocation/revocable.js';
import { everyRevocation } from '../../revocation-kinds/every-revocation.js';
import { noteCause } from '#domain/oauth/shared-signals/signalled-ends.repository.js';
import { forgetUncollected } from '#domain/providers/saml/received-assertions.repository.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { ENDED_TABLES, waitForWriters } from './ended-tables.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The values of `reason` and `revokedBy` in rows that are revoked because the database lost
 * commits.
 */
export const LOST_COMMITS = {
  reason: 'database lost commits',
  revokedBy: 'reconciliation',
} as const;

/** Milliseconds between two warnings about a wait for transactions that write. */
const WARN_EVERY = 10_000;

/**
 * Ends the access that the database has on record: sessions, grants, OAuth and API tokens, codes,
 * interactions and re-enrollment passes. It marks every valid certificate as revoked, queues GitHub
 * tokens for revocation, and pauses event receivers. Security keys and accounts stay, and so do
 * SCIM tokens and client secrets, which an admin then has to confirm.
 *
 * Each batch is a transaction of its own, and locks rows in the same order as the rest of the
 * service. If a run is killed, the next run ends the rest.
 *
 * @param dataSource a pool with a free connection to the server, which may still be unconfirmed
 * @returns the numbers of the items that were valid
 */
export async function endEverything(dataSource: DataSource, log: Logger): Promise<RevokedCounts> {
  for (const table of ENDED_TABLES) await waitTelling(dataSource, table, log);
  const transact = (work: (tx: EntityManager) => Promise<EndedBatch>) =>
    withTransactionRetry(dataSource, async (tx) => {
      await noteCause(tx, LOST_COMMITS);
      return work(tx);
    });
  const counts = await everyRevocation().endOnRecord(transact, LOST_COMMITS);
  await forgetUncollected(dataSource.manager);
  log.log(`Everything on record has ended: ${JSON.stringify(counts)}`);
  return counts;
}

/**
 * Waits until the open transactions that write to a table have ended. It logs a warning at
 * intervals, because no credential is issued during the wait.
 */
async function waitTelling(
  dataSource: DataSource,
  table: (typeof ENDED_TABLES)[number],
  log: Logger,
): Promise<void> {
  const warning = setInterval(() => {
    log.warn(
      `All access ends once the open transactions that write to ${table} have ended. pg_stat_activity shows them`,
    );
  }, WARN_EVERY);
  try {
    await withTransactionRetry(dataSource, (tx) => waitForWriters(tx, table));
  } finally {
    clearInterval(warning);
  }
}
