import type { Config } from '#platform/config/config.js';
import type { DatabaseIdentity } from '#platform/database/identity/database-identity.js';

/**
 * The value of SVC_DATABASE_FAILOVER, by which the operator states if standbys replicate
 * synchronously.
 */
export type FailoverSetting = Config['database']['failover'];

/**
 * The facts that one process of the service reports about a database server after a failover. The
 * service uses the server only after it has decided from the reported facts, because the server can
 * lack commits.
 */
export interface ReplicaReport {
  /** True if the process ran before the server changed, and remembers what it committed. */
  readonly isWitness: boolean;
  /** True if the server lacks something that the process had committed. */
  readonly isLost: boolean;
  /**
   * True if the server lacks the newest heartbeat of the process. Commits of other processes after
   * the heartbeat are then missing, too, because PostgreSQL loses all commits after a point.
   */
  readonly lacksHeartbeat: boolean;
  /**
   * The highest serial of an SSH certificate that the process issued; undefined if it issued none.
   */
  readonly highestSerial: bigint | undefined;
}

/**
 * The decision about a changed database server: what must be done before any credential is issued
 * on it.
 */
export interface FailoverDecision {
  /**
   * True if the server has another system identifier, database oid or timeline than the confirmed
   * server, and so is another one.
   */
  readonly isAnother: boolean;
  /**
   * True if a report says that the database lost commits. A process of the service reports this if
   * the server lacks something that the process committed. The operator's command `reconcile` also
   * reports it.
   */
  readonly isProved: boolean;
  /**
   * True if a process that ran before the change compared the server with the commits that it
   * remembers. It is false if the newest commits are missing and a process that may have made them
   * has not reported.
   */
  readonly hasWitness: boolean;
  /** True if all access must end, because revocations may be lost. */
  readonly endsEverything: boolean;
  /**
   * The SSH certificates that are revoked, by their serials. `first`: those with all serials so
   * far. `unrecorded`: only serials without a row, because the row may have been lost. `same`:
   * none.
   */
  readonly serials: 'same' | 'first' | 'unrecorded';
  readonly highestSerial: bigint | undefined;
}

/** The reports of all processes about a database server. */
export interface Reports {
  readonly all: readonly ReplicaReport[];
  /**
   * False if a process that ran shortly before the change has not reported, because it died or
   * cannot reach the server.
   */
  readonly isComplete: boolean;
}

/**
 * Decides what a change of the database server means. If another server answers, and no process
 * that ran before the change reports about it, no process can prove or disprove a loss of commits.
 * This counts as a loss, unless the operator states that the standbys replicate synchronously.
 *
 * A loss is also assumed if the newest commits are missing, and a process that may have made some
 * of them has not reported. Only that process could prove the loss.
 *
 * @param confirmed the identity of the confirmed server
 * @param now the identity of the present server
 */
export function decide(
  confirmed: DatabaseIdentity,
  now: DatabaseIdentity,
  { all: reports, isComplete }: Reports,
  setting: FailoverSetting,
): FailoverDecision {
  const isAnother = differs(confirmed, now);
  const isProved = reports.some(({ isLost }) => isLost);
  const isPartial = !isComplete && reports.some(({ lacksHeartbeat }) => lacksHeartbeat);
  const hasWitness = !isPartial && reports.some(({ isWitness }) => isWitness);
  const isDoubted = setting === 'asynchronous' || (setting === undefined && !hasWitness);
  // On the same timeline, a missing heartbeat proves that a crash lost commits. A process that did
  // not report may have made some of them, so everything ends.
  const endsEverything = isProved || (isPartial && !isAnother) || (isAnother && isDoubted);
  return {
    isAnother,
    isProved,
    hasWitness,
    endsEverything,
    serials: serialsOf(isAnother, endsEverything, hasWitness),
    highestSerial: highestOf(reports),
  };
}

/**
 * Decides which serials of SSH certificates are revoked. On another server, new certificates get
 * serials above all earlier ones. All certificates so far are revoked if all access ends, or if
 * commits may be lost that no process remembers.
 */
function serialsOf(
  isAnother: boolean,
  endsEverything: boolean,
  hasWitness: boolean,
): FailoverDecision['serials'] {
  if (endsEverything) return 'first';
  if (!isAnother) return 'same';
  return hasWitness ? 'unrecorded' : 'first';
}

/**
 * Returns true if the identity of the confirmed server is that of the present one, so that no
 * confirmation is needed.
 */
export function isSameServer(confirmed: DatabaseIdentity, now: DatabaseIdentity): boolean {
  return confirmed.startedAt === now.startedAt && !differs(confirmed, now);
}

/**
 * Compares the properties of two servers that change only by a promotion of a standby or the
 * restore of a backup. A property that one of the servers did not show is not compared.
 */
function differs(confirmed: DatabaseIdentity, now: DatabaseIdentity): boolean {
  const fields = ['systemIdentifier', 'databaseOid', 'timeline'] as const;
  return fields.some((field) => {
    const [before, after] = [confirmed[field], now[field]];
    return before !== null && after !== null && before !== after;
  });
}

function highestOf(reports: readonly ReplicaReport[]): bigint | undefined {
  return reports.reduce<bigint | undefined>((highest, { highestSerial }) => {
    if (highestSerial === undefined) return highest;
    return highest === undefined || highestSerial > highest ? highestSerial : highest;
  }, undefined);
}
