import { Logger } from '@nestjs/common';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { operatorDetails, type MachineOperator } from '../../operator-access/operator.js';
import { systemClock } from '#platform/clock/clock.js';
import { newUuid } from '#platform/clock/random.js';
import { lockConfirmedIdentity } from '#platform/database/identity/database-identity.js';
import type { UncheckedDatabase } from '#platform/database/open-database.js';
import { Confirmation } from '../confirmation.js';
import { FAILOVER_LIMITS } from '../failover-limits.js';
import { endEverything } from '../reconciliation/end-everything.js';
import { listKeptSecrets } from '../reconciliation/lost-acts.repository.js';
import { ReplicaMemory } from '../replica-memory.js';
import { recordReport, withdrawConfirmation } from '../replicas.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/**
 * Ends all access on the order of the operator, as the service does by itself after a proven loss
 * of commits. All certificates so far are revoked, and the next login of each user needs both the
 * identity provider and the security key.
 *
 * The service uses a database server only after it has confirmed that the server lost no commits.
 * One transaction withdraws this confirmation and reports a loss, so that a running service issues
 * nothing until one process has ended everything. If the command is killed, the report stays, and
 * the service or the next command continues.
 *
 * @throws Error in a database that no service of this version has started on
 */
export async function reconcileNow(
  database: UncheckedDatabase,
  operator: MachineOperator,
): Promise<void> {
  await orderReconciliation(database, operator);
  const memory = new ReplicaMemory(FAILOVER_LIMITS, 0, systemClock);
  const log = new Logger('database');
  const parts = {
    database,
    setting: undefined,
    limits: FAILOVER_LIMITS,
    clock: systemClock,
    security: new Logger('security'),
    endEverything: (dataSource: Parameters<typeof endEverything>[0]) =>
      endEverything(dataSource, log),
    listSecrets: listKeptSecrets,
    // This does nothing, because the running processes of the service repeat the acts that they
    // remember.
    redo: () => Promise.resolve(),
  };
  await new Confirmation(parts, memory).run();
}

async function orderReconciliation(
  database: UncheckedDatabase,
  operator: MachineOperator,
): Promise<void> {
  const dataSource = await database.open();
  try {
    await withTransactionRetry(dataSource, async (tx) => {
      if (!(await lockConfirmedIdentity(tx))) {
        throw new Error('No service of this version has started on this database yet.');
      }
      await withdrawConfirmation(tx);
      const proof = { isWitness: false, isLost: true, lacksHeartbeat: false } as const;
      await recordReport(tx, { replicaId: newUuid(), ...proof, highestSerial: undefined });
      await new AuditLog().record(tx, {
        type: 'reconciliation_ordered',
        actorId: null,
        subjectId: null,
        orgId: null,
        origin: { requestId: newUuid(), ip: undefined, userAgent: undefined },
        details: { ...operatorDetails(operator) },
      });
    });
  } finally {
    await dataSource.destroy();
  }
}
