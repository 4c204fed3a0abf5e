import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { Clock } from '#platform/clock/clock.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { observeGauges } from '#platform/telemetry/gauges/gauges.js';
import { noticeFigures, type NoticeFigures } from '../notice-figures/notice-figures.repository.js';
import { WATCHED_QUEUES, WAITS_LONG } from './notice-queues.js';

/** Milliseconds between two reads of the numbers of notices. */
const INTERVAL = 60_000;

/** Milliseconds until the same warning is logged again. */
const REMIND = 3_600_000;

const UNIT = '{notice}';

/** The gauges of the numbers of notices, which are exported by OTLP (OpenTelemetry). */
const GAUGES = {
  'svc.notices.waiting': { description: 'Notices to applications that wait', unit: UNIT },
  'svc.notices.oldest': { description: 'The time for which the oldest notice waits', unit: 's' },
  'svc.notices.sent': { description: 'Notices that were taken in the last 30 days', unit: UNIT },
  'svc.notices.failed': { description: 'Dead letters of the last 30 days', unit: UNIT },
} as const;

/**
 * Reads the numbers of waiting, sent and failed notices to applications and event receivers once a
 * minute, and exports them by OTLP (OpenTelemetry). If notices wait for long, it logs a warning
 * under `security`.
 */
@Injectable()
export class NoticeWatch implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('notices');
  readonly #security = new Logger('security');
  readonly #warnedAt = new Map<string, number>();
  readonly #worker: QueueWorker;
  #figures: readonly NoticeFigures[] = [];

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {
    const name = 'The look at the figures of notices';
    const drain = () => this.look();
    this.#worker = new QueueWorker(clock, { drain, poll: INTERVAL, log: this.#log, name });
  }

  onApplicationBootstrap(): void {
    observeGauges(GAUGES, () => this.#figures.map((figures) => this.#observed(figures)));
    this.#worker.start();
  }

  async stopWork(): Promise<void> {
    await this.#worker.stop();
  }

  /** Reads the numbers once, and logs a warning if notices wait for long. */
  async look(): Promise<void> {
    const figures = await noticeFigures(this.dataSource.manager, WATCHED_QUEUES, 'all');
    // Event receivers never register themselves, so their entries for self-registered clients are
    // always empty and are left out.
    this.#figures = figures.filter((one) => !(one.isOfReceivers && one.isSelfRegistered));
    for (const one of this.#figures) this.#warn(one);
  }

  #observed(figures: NoticeFigures) {
    const { kind, isSelfRegistered, waiting, age, sent, failed } = figures;
    return {
      attributes: { kind, registered_by: isSelfRegistered ? 'itself' : 'organization' },
      values: {
        'svc.notices.waiting': waiting,
        'svc.notices.oldest': age / 1000,
        'svc.notices.sent': sent,
        'svc.notices.failed': failed,
      },
    };
  }

  /**
   * Logs a warning about notices that wait for long, at most once in {@link REMIND} milliseconds
   * for each kind. Notices to clients that registered themselves are ignored, because one user
   * could register many such clients, and the warnings would hide others.
   */
  #warn(figures: NoticeFigures): void {
    const { kind, isSelfRegistered, isOfReceivers, waiting, age, sent, failed } = figures;
    if (isSelfRegistered) return;
    if (age < WAITS_LONG) {
      this.#warnedAt.delete(kind);
      return;
    }
    const now = this.clock.monotonic();
    if (now - (this.#warnedAt.get(kind) ?? Number.NEGATIVE_INFINITY) < REMIND) return;
    this.#warnedAt.set(kind, now);
    this.#security.warn(
      { kind, waiting, oldestSeconds: Math.round(age / 1000), sent, failed },
      isOfReceivers
        ? 'An event receiver has not taken an event for 15 minutes or longer'
        : 'Applications have not heard of an end of access for 15 minutes or longer',
    );
  }
}
