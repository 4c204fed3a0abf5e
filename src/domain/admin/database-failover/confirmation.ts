import type { Logger } from '@nestjs/common';
import { holdAuditWriters } from '#domain/audit/feed/audit-feed.repository.js';
import { highestSerial, moveSerials } from '#domain/ssh/serials/serials.repository.js';
import type { Clock } from '#platform/clock/clock.js';
import { newUuid } from '#platform/clock/random.js';
import {
  lockConfirmedIdentity,
  readIdentity,
  recordIdentity,
  type DatabaseIdentity,
} from '#platform/database/identity/database-identity.js';
import type { UncheckedDatabase } from '#platform/database/open-database.js';
import { isOutage } from '#platform/database/statements/faults.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { decide, isSameServer, type FailoverDecision, type FailoverSetting } from './decision.js';
import type { FailoverLimits } from './failover-limits.js';
import {
  compareMemory,
  countMissingOf,
  hasEndedSince,
  type MarkComparison,
} from './lost-commits.js';
import { announce, detailsOf } from './outcome.js';
import type { KnownStart, ReplicaMemory } from './replica-memory.js';
import {
  AnotherServer,
  assertStart,
  completeReports,
  deleteReports,
  isReportDue,
  lastConfirmation,
  liftTimeLimits,
  recordConfirmation,
  recordReport,
  tryConfirmationLock,
  withdrawConfirmation,
} from './replicas.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';

/** The start time that the database holds for a server whose confirmation was withdrawn. */
const WITHDRAWN = '0';

/**
 * The greatest value of SVC_SESSION_HOURS, and so the longest validity of a certificate. The
 * configured value is not used, because certificates of an earlier, greater value may be valid.
 */
const LONGEST_SESSION_HOURS = 12;

/** The database, the settings and the functions that a confirmation needs. */
export interface ConfirmationParts {
  readonly database: UncheckedDatabase;
  readonly setting: FailoverSetting;
  readonly limits: FailoverLimits;
  readonly clock: Clock;
  readonly security: Logger;
  /**
   * A signal that is aborted when this process stops, so that the confirmation stops waiting for
   * other processes.
   */
  readonly signal?: AbortSignal;
  /** Ends all sessions, grants, tokens, certificates and other rows that give access. */
  endEverything(dataSource: DataSource): Promise<object>;
  /**
   * Lists the tokens and secrets that an admin must check and confirm after a loss of commits, in
   * the transaction that confirms the server.
   */
  listSecrets(tx: EntityManager): Promise<number>;
  /** Ends again the access that this process has ended, if the server lost the commits. */
  redo(dataSource: DataSource): Promise<void>;
}

/**
 * Confirms a database server after each start of PostgreSQL, because a failover may have lost
 * commits. Each running process reports which of its commits the server lacks. Then one process
 * decides, ends the access that must end, and records the identity of the server. Until then
 * nothing is issued.
 */
export class Confirmation {
  constructor(
    private readonly parts: ConfirmationParts,
    private readonly memory: ReplicaMemory,
  ) {}

  /**
   * Takes part in the confirmation of the server. Returns as soon as the server is confirmed and
   * either lacks nothing that this process remembers, or all access has ended.
   *
   * @throws the driver's error if the database cannot be reached, {@link AnotherServer} if another
   *   server answers, and OpenAuditWriters if an older transaction still holds the audit log; the
   *   caller then starts again
   */
  async run(): Promise<void> {
    const { database, limits } = this.parts;
    // If the server is gone, this process must notice soon, because the other processes wait for
    // its report only for `limits.patience`.
    const dataSource = await database.open(limits.patience / 2);
    const runner = dataSource.createQueryRunner();
    try {
      const { manager } = runner;
      const identity = await readIdentity(manager);
      let isAdopted = false;
      while (!isAdopted) {
        const wasLost = await this.#report(manager, identity);
        const known = await this.#confirmed(manager, identity);
        isAdopted = known !== undefined && (await this.#adopt(manager, known, wasLost));
      }
    } finally {
      await runner.release();
      await dataSource.destroy();
    }
  }

  /**
   * Compares the commits that this process remembers with the server, and stores the result as a
   * report for the process that decides about the server. It stores no report if the server is
   * confirmed and lacks nothing, or if all access ended already when the server was confirmed.
   *
   * @returns true if the server lacks something
   */
  async #report(manager: EntityManager, identity: DatabaseIdentity): Promise<boolean> {
    const comparison = await withTransactionRetry(manager, (tx) => this.#compare(tx, identity));
    const { loss, hasEnded } = comparison;
    if (loss === undefined) return false;
    const effect = hasEnded ? 'has ended already' : 'ends before the service goes on';
    this.parts.security.warn(
      { missing: loss },
      `the database lacks what this process had committed: all access ${effect}`,
    );
    await this.#redo(identity);
    if (hasEnded) return true;
    await withTransactionRetry(manager, async (tx) => {
      await assertStart(tx, identity.startedAt);
      await this.#recordReport(tx, this.memory.id, comparison);
    });
    return true;
  }

  async #compare(tx: EntityManager, identity: DatabaseIdentity): Promise<Comparison> {
    await assertStart(tx, identity.startedAt);
    const confirmed = await lockConfirmedIdentity(tx);
    const comparison = await compareMemory(tx, this.memory);
    const isProof = comparison.loss !== undefined;
    const isConfirmed = confirmed !== undefined && isSameServer(confirmed, identity);
    const hasEnded = isConfirmed && isProof && (await hasEndedSince(tx, this.memory));
    if (isConfirmed && (hasEnded || !isProof)) return { ...comparison, hasEnded };
    // Other processes may have confirmed the server before this one found the loss. It is also
    // possible that this server was cloned from the confirmed one and shows the same start time. In
    // both cases the confirmation must not hold for this server.
    if (confirmed?.startedAt === identity.startedAt) await withdrawConfirmation(tx);
    // A proven loss is recorded at once under a new id. So the loss counts even if this process
    // ends before it reports under the id of the process.
    await this.#recordReport(tx, isProof ? newUuid() : this.memory.id, comparison);
    return { ...comparison, hasEnded };
  }

  #recordReport(
    tx: EntityManager,
    replicaId: string,
    { loss, lacksHeartbeat }: MarkComparison,
  ): Promise<void> {
    const { isWitness, highestSerial: highest } = this.memory;
    const isLost = loss !== undefined;
    const found = { isWitness, isLost, lacksHeartbeat, highestSerial: highest };
    return recordReport(tx, { replicaId, ...found });
  }

  /**
   * Ends again the access that this process has ended, if the server lost the commits. An error of
   * one of these acts must not stop the report of the loss, because the report ends all access in
   * any case.
   */
  async #redo(identity: DatabaseIdentity): Promise<void> {
    try {
      await this.#workOn(identity, (dataSource) => this.parts.redo(dataSource));
    } catch (error) {
      if (isOutage(error) || error instanceof AnotherServer) throw error;
      this.parts.security.error(
        error,
        'removals and revocations of the last hour may be undone: compare the audit log with the accounts',
      );
    }
  }

  /**
   * Waits until this process or another one has confirmed the server.
   *
   * @returns undefined if another process has withdrawn the confirmation. All reports were then
   *   deleted, so this process must report again
   */
  async #confirmed(
    manager: EntityManager,
    identity: DatabaseIdentity,
  ): Promise<KnownStart | undefined> {
    const { clock, limits, signal } = this.parts;
    for (;;) {
      const outcome = await withTransactionRetry(manager, (tx) => this.#conclude(tx, identity));
      if (outcome) {
        if (outcome.decision) announce(this.parts.security, outcome.decision);
        return outcome.known;
      }
      await clock.sleep(limits.poll, signal && { signal });
      if (await isReportDue(manager, this.memory.id)) return undefined;
    }
  }

  /**
   * Decides what the change of the server means, and confirms the server. Returns undefined if
   * another process is doing so, or if the report of a running process is still missing.
   */
  async #conclude(tx: EntityManager, identity: DatabaseIdentity): Promise<Outcome | undefined> {
    if (!(await tryConfirmationLock(tx))) return undefined;
    await liftTimeLimits(tx);
    await assertStart(tx, identity.startedAt);
    const confirmed = await lockConfirmedIdentity(tx);
    if (confirmed && isSameServer(confirmed, identity)) return { known: await knownStart(tx) };
    const reports = await completeReports(tx, this.parts.limits);
    if (!reports) return undefined;
    const decision = confirmed && decide(confirmed, identity, reports, this.parts.setting);
    if (decision?.endsEverything === true) {
      await this.#workOn(identity, (dataSource) => this.parts.endEverything(dataSource));
      await this.parts.listSecrets(tx);
    }
    // If a confirmation of this start was withdrawn, transactions that began before the withdrawal
    // may still be open and write audit events. So this transaction waits for them, and confirms
    // nothing if one of them stays open.
    if (confirmed?.startedAt === WITHDRAWN) await holdAuditWriters(tx);
    await this.#moveSerials(tx, decision);
    await recordIdentity(tx, identity, decision?.endsEverything === true);
    if (confirmed && decision)
      await recordConfirmation(tx, detailsOf(confirmed, identity, decision));
    await deleteReports(tx);
    return { known: await knownStart(tx), decision };
  }

  /**
   * Runs `work` on a separate connection, and checks before and after it that the connection
   * reached the start of PostgreSQL that this process confirms. If there are several hosts, a proxy
   * or a second promotion, the connection may reach another server. That server must then not be
   * confirmed, because the access on it has not ended.
   *
   * @throws AnotherServer before or after the work
   */
  async #workOn(
    { startedAt }: DatabaseIdentity,
    work: (dataSource: DataSource) => Promise<unknown>,
  ): Promise<void> {
    const dataSource = await this.parts.database.open();
    try {
      await assertStart(dataSource.manager, startedAt);
      await work(dataSource);
      await assertStart(dataSource.manager, startedAt);
    } finally {
      await dataSource.destroy();
    }
  }

  async #moveSerials(tx: EntityManager, decision: FailoverDecision | undefined): Promise<void> {
    const sessionHours = LONGEST_SESSION_HOURS;
    const clock = this.parts.clock.milliseconds();
    const highestSeen = decision?.highestSerial;
    if (decision === undefined || decision.serials === 'same') {
      await moveSerials(tx, { kind: 'same', clock, highestSeen });
      return;
    }
    const { serials: revokeFrom } = decision;
    await moveSerials(tx, { kind: 'another', revokeFrom, highestSeen, clock, sessionHours });
  }

  /**
   * Remembers that the server is confirmed, so that this process goes on to work on it.
   *
   * @returns false if the server lacks commits that this process made on another server after the
   *   comparison; the process must then report again
   */
  async #adopt(manager: EntityManager, known: KnownStart, wasLost: boolean): Promise<boolean> {
    const { memory } = this;
    memory.noteSerial(await highestSerial(manager));
    // Commits that reached another server after the comparison are missing on this one.
    const noted = memory.takeNoted();
    if ((await countMissingOf(manager, noted)) > 0) return false;
    memory.adopt(known, wasLost);
    return true;
  }
}

interface Comparison extends MarkComparison {
  /**
   * True if another process has already ended all access because of the loss, when it confirmed the
   * server.
   */
  readonly hasEnded: boolean;
}

/**
 * The confirmed start of PostgreSQL, and the decision about it if this process made the decision.
 */
interface Outcome {
  readonly known: KnownStart;
  readonly decision?: FailoverDecision | undefined;
}

async function knownStart(tx: EntityManager): Promise<KnownStart> {
  const known = await lastConfirmation(tx);
  if (!known) throw new Error('the identity of the database is not on record');
  return known;
}
