import { Logger } from '@nestjs/common';
import { moveSerials } from '#domain/ssh/serials/serials.repository.js';
import { systemClock, type Clock } from '#platform/clock/clock.js';
import type { Config } from '#platform/config/config.js';
import type { ConfirmAtStart, UncheckedDatabase } from '#platform/database/open-database.js';
import { isDatabaseAway, reasonOf } from '#platform/database/statements/faults.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { Confirmation } from './confirmation.js';
import { FAILOVER_LIMITS, type FailoverLimits } from './failover-limits.js';
import { endEverything } from './reconciliation/end-everything.js';
import { listKeptSecrets } from './reconciliation/lost-acts.repository.js';
import { ReplicaMemory } from './replica-memory.js';
import { AnotherServer, forgetReplicas } from './replicas.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * The longest time, in milliseconds, for which a start of the service tries again if the database
 * cannot be reached.
 */
const PATIENCE = 150_000;

/**
 * Returns the function by which a starting process waits until the database server is confirmed to
 * have lost no commits. A new process remembers no commits and cannot prove a loss itself, so it
 * waits for the reports of the processes that are already running.
 */
export function confirmAtStart(
  config: Pick<Config, 'database'>,
  limits: FailoverLimits = FAILOVER_LIMITS,
  clock: Clock = systemClock,
): ConfirmAtStart {
  return async (database) => {
    const log = new Logger('database');
    const security = new Logger('security');
    const confirmation = new Confirmation(
      {
        database,
        setting: config.database.failover,
        limits,
        clock,
        security,
        endEverything: (dataSource) => endEverything(dataSource, log),
        listSecrets: listKeptSecrets,
        redo: () => Promise.resolve(),
      },
      new ReplicaMemory(limits, 0, clock),
    );
    if (database.isEmbedded) await once(database, (tx) => forgetReplicas(tx));
    await patiently(confirmation, log, limits, clock);
    await once(database, async (tx) => {
      await moveSerials(tx, { kind: 'same', clock: clock.milliseconds() });
    });
  };
}

/**
 * Runs the confirmation of the database server. If the database cannot be reached or another server
 * answers, it runs the confirmation again, for at most {@link PATIENCE}.
 */
async function patiently(
  confirmation: Confirmation,
  log: Logger,
  limits: FailoverLimits,
  clock: Clock,
): Promise<void> {
  const deadline = clock.monotonic() + PATIENCE;
  for (;;) {
    try {
      await confirmation.run();
      return;
    } catch (error) {
      if (clock.monotonic() >= deadline || !isPassing(error)) throw error;
      log.warn(`PostgreSQL is not confirmed yet (${reasonOf(error)}): trying again`);
      await clock.sleep(limits.retry);
    }
  }
}

/**
 * Returns true for an error after which another try can succeed: the database cannot be reached, or
 * another server answers now.
 */
function isPassing(error: unknown): boolean {
  return isDatabaseAway(error) || error instanceof AnotherServer;
}

async function once(
  database: UncheckedDatabase,
  work: (tx: EntityManager) => Promise<void>,
): Promise<void> {
  const dataSource = await database.open();
  try {
    await withTransactionRetry(dataSource, work);
  } finally {
    await dataSource.destroy();
  }
}
