import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { NIL } from 'uuid';
import { OrganizationsRepository } from '../organizations.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { TxtRecords } from '#platform/outbound/txt-records.js';
import { DomainOwnership } from './domain-ownership.service.js';
import { isProof, proofRecord } from './domain-record.js';
import { afterCheck, MOST_FAILURES, type CheckResult } from './domain-state.js';
import {
  listDue,
  lockRechecks,
  recordCheck,
  unlockRechecks,
  type DueDomain,
} from './organization-domains.repository.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { directPoolOf } from '#platform/database/statements/pooled.js';

/** Milliseconds between two searches for domains whose daily check is due. */
const INTERVAL = 600_000;

/** The number of domains whose DNS records are looked up at the same time. */
const AT_ONCE = 32;

/**
 * Checks the DNS record of each domain that is proven by DNS every day, in one replica at a time.
 * The time of the next check of a domain is stored in its row, so that a restart neither repeats
 * nor misses a check.
 */
@Injectable()
export class DomainRechecks implements OnApplicationBootstrap, BackgroundProvider {
  readonly #security = new Logger('security');
  readonly #log = new Logger('domains');
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(
    private readonly dataSource: DataSource,
    private readonly organizations: OrganizationsRepository,
    private readonly ownership: DomainOwnership,
    private readonly txtRecords: TxtRecords,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  onApplicationBootstrap(): void {
    this.#running = this.#work();
  }

  /**
   * Ends the DNS look-ups that are running, without a result, and waits for the changes that are
   * being written.
   */
  async stopWork(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /**
   * Checks every domain whose check is due, once.
   *
   * @returns the number of checked domains; undefined if another process is checking
   */
  async run(): Promise<number | undefined> {
    // The advisory lock belongs to one connection. So the same connection, which no pooler may
    // share, takes the lock and releases it.
    const runner = directPoolOf(this.dataSource).createQueryRunner();
    try {
      if (!(await lockRechecks(runner.manager))) return undefined;
      try {
        return await this.#checkDue(runner.manager);
      } finally {
        await unlockRechecks(runner.manager);
      }
    } finally {
      await runner.release();
    }
  }

  async #work(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.run();
      } catch (error) {
        this.#log.warn(`The daily check of domains waits: ${reasonOf(error)}`);
      }
      await this.clock.sleep(INTERVAL, { signal }).catch(() => {});
    }
  }

  async #checkDue(tx: EntityManager): Promise<number> {
    let checked = 0;
    let after: Pick<DueDomain, 'orgId' | 'domain'> | undefined = { orgId: NIL, domain: '' };
    while (after && !this.#stopping.signal.aborted) {
      const due = await listDue(tx, this.clock.now(), after, AT_ONCE);
      const results = await Promise.all(
        due.map(async (one) => ({ one, result: await this.#lookUp(one) })),
      );
      for (const { one, result } of results) await this.#settle(tx, one, result);
      checked += due.length;
      after = due.length < AT_ONCE ? undefined : due.at(-1);
    }
    return checked;
  }

  async #lookUp({ domain, token }: DueDomain): Promise<CheckResult> {
    const record = proofRecord(domain, token);
    try {
      const texts = await this.txtRecords.lookUp(record.name, this.#stopping.signal);
      return isProof(record, texts) ? 'found' : 'missing';
    } catch (error) {
      this.#log.warn(`The DNS gave no usable response for ${record.name}: ${reasonOf(error)}`);
      return 'fault';
    }
  }

  /**
   * Records the result of a check. If the recording fails, the check is repeated, because the row
   * keeps the old time of the next check. A check that was interrupted because the service stops
   * has no result.
   */
  async #settle(tx: EntityManager, due: DueDomain, result: CheckResult): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    try {
      await this.#record(tx, due, result);
    } catch (error) {
      this.#log.warn(`The check of ${due.domain} waits: ${reasonOf(error)}`);
    }
  }

  async #record(tx: EntityManager, due: DueDomain, result: CheckResult): Promise<void> {
    const now = this.clock.now();
    const checked = afterCheck(due, result, now, this.random.bytes(1).readUInt8() / 255);
    const { orgId, domain } = due;
    const facts = { orgId, domain, failures: checked.failures };
    if (checked.failures < MOST_FAILURES) {
      const isRecorded = await recordCheck(tx, due, checked, now);
      if (isRecorded && checked.failures > due.failures) {
        this.#security.warn(facts, 'the record of a verified domain is missing');
      }
      return;
    }
    const isLost = await withTransactionRetry(tx, async (inner) => {
      await this.organizations.lockDomain(inner, domain);
      return this.ownership.lose(inner, due, checked.failures);
    });
    if (isLost) this.#security.warn(facts, 'a domain is unverified: its users are issued nothing');
  }
}
