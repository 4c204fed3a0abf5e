import { Logger } from '@nestjs/common';
import type { NotedAct } from '#domain/audit/noted-act.js';
import { isOutage, reasonOf } from '#platform/database/statements/faults.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { claimLost, findLost, listSecret } from './lost-acts.repository.js';
import type { RecentEnd } from './recent-ends.js';
import { redoAct } from './redo-act.js';
import { redoParts } from './redo-parts.js';

/** The most audit events that one statement looks for. */
const BATCH = 5000;

/** The numbers of lost and of repeated acts, which {@link redo} returns. */
export interface Redone {
  /** The number of acts that the database server had lost. */
  readonly lost: number;
  /**
   * The number of acts that changed something when they were repeated. Another process may have
   * repeated the others.
   */
  readonly redone: number;
}

/**
 * Repeats, in their order, the acts of the last hour by which this process ended access, if the
 * database server lost them in a failover. It also lists the secrets, such as SCIM tokens, that
 * were made or ended in the last hour. An admin must check and confirm each of them. Each act is a
 * transaction of its own, and only one of several processes repeats it. If an act fails, a log line
 * under `security` names it, and the remaining acts are still repeated.
 *
 * @param dataSource a pool with a connection that is not in use. Its server may be one that the
 *   service does not use yet
 * @throws the driver's error if the server becomes unreachable
 */
export async function redo(dataSource: DataSource, ends: readonly RecentEnd[]): Promise<Redone> {
  const security = new Logger('security');
  const parts = redoParts();
  const lostIds = await findAllLost(dataSource, ends);
  let redone = 0;
  let lost = 0;
  for (const end of ends) {
    const { auditId, acts, at } = end;
    const isLost = lostIds.has(auditId);
    if (!isLost && !acts.some(isListed)) continue;
    if (isLost) lost += acts.length;
    try {
      redone += await withTransactionRetry(dataSource, async (tx) => {
        let changed = 0;
        if (isLost && (await claimLost(tx, auditId))) {
          for (const act of acts) changed += (await redoAct(tx, parts, { act, auditId })) ? 1 : 0;
        }
        for (const act of acts) if (isListed(act)) await listSecret(tx, act, { isLost, at });
        return changed;
      });
    } catch (error) {
      if (isOutage(error)) throw error;
      const kinds = acts.map(({ kind }) => kind);
      security.error({ auditId, kinds }, `a lost act was not done again: ${reasonOf(error)}`);
    }
  }
  return { lost, redone };
}

async function findAllLost(
  dataSource: DataSource,
  ends: readonly RecentEnd[],
): Promise<ReadonlySet<string>> {
  const lost = new Set<string>();
  for (let from = 0; from < ends.length; from += BATCH) {
    const ids = ends.slice(from, from + BATCH).map(({ auditId }) => auditId);
    for (const id of await findLost(dataSource.manager, ids)) lost.add(id);
  }
  return lost;
}

/**
 * Returns true if the admins of the organization must confirm the secret that an act made or ended.
 */
function isListed(act: NotedAct): act is Extract<NotedAct, { readonly secret: unknown }> {
  return (act.kind === 'secret_made' || act.kind === 'secret_ended') && act.orgId !== null;
}
