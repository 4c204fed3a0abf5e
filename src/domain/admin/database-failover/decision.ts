import type { Config } from '#platform/config/config.js';
import type { DatabaseIdentity } from '#platform/database/identity/database-identity.js';

/** The value of SVC_DATABASE_FAILOVER. */
export type FailoverSetting = Config['database']['failover'];

/** The findings of one process of the service about an unconfirmed server. */
export interface ReplicaReport {
  /** True if the process ran before the change and remembers what it committed. */
  readonly isWitness: boolean;
  /** True if something that the process had committed is missing. */
  readonly isLost: boolean;
  /**
   * True if the newest heartbeat of the process is missing. Commits of other processes at that time
   * are then missing, too.
   */
  readonly lacksHeartbeat: boolean;
  /** The highest serial of an SSH certificate that the process issued. */
  readonly highestSerial: bigint | undefined;
}

/** The acts that a confirmation does before anything is issued on the server. */
export interface FailoverDecision {
  /** True if the server has another system identifier, oid or timeline than the confirmed one. */
  readonly isAnother: boolean;
  /** True if a process proved that commits were lost. */
  readonly isProved: boolean;
  /**
   * True if a process that ran before the change compared the server with its memory. It is false
   * if the newest commits are missing and a process that may have made them does not report.
   */
  readonly hasWitness: boolean;
  /** True if all access on record ends. */
  readonly endsEverything: boolean;
  /**
   * The serials whose certificates are revoked. `first`: all serials so far. `unrecorded`: the
   * serials without a record. `same`: none.
   */
  readonly serials: 'same' | 'first' | 'unrecorded';
  readonly highestSerial: bigint | undefined;
}

/** The reports about a server. */
export interface Reports {
  readonly all: readonly ReplicaReport[];
  /**
   * False if a process that ran shortly before the change has not reported, because it died or
   * reaches no server.
   */
  readonly isComplete: boolean;
}

/**
 * Decides the effect of a change of the server. If no process that ran before reports about another
 * server, no process can prove that commits were lost. This counts as a loss, unless the operator
 * says that the standbys replicate synchronously. The same holds if the newest commits are missing
 * and a process that may have committed then does not report, because only that process could prove
 * it.
 *
 * @param confirmed the identity on record
 * @param now the identity of the server
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
  // On the same timeline a missing heartbeat proves a crash that lost commits. The silent process
  // may have made some of them.
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
 * Decides which serials are revoked. On another server the serials move ahead. All certificates so
 * far are revoked if commits may be lost that no process remembers.
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
 * Returns true if an identity on record is the identity of a server: then the server is confirmed.
 */
export function isSameServer(confirmed: DatabaseIdentity, now: DatabaseIdentity): boolean {
  return confirmed.startedAt === now.startedAt && !differs(confirmed, now);
}

/**
 * Compares the values that only a promotion or a restore changes. If one of the servers did not
 * show a value, it is not compared.
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
