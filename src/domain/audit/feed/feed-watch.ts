import { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { observeGauges } from '#platform/telemetry/gauges/gauges.js';
import { feedDelayIn } from './audit-feed.repository.js';

/**
 * Milliseconds between two reads of the delay: the time for which the oldest event has waited to
 * appear in the feed.
 */
const INTERVAL = 30_000;

/** Milliseconds until the warning of a long delay is logged again, if the delay is still long. */
const REMIND = 3_600_000;

/**
 * The milliseconds after which one look begins no further page of organizations. The next look goes
 * on there, so that many organizations do not keep the database busy. A test lowers the number.
 */
export const LOOKING = { longest: 1_000 };

/** The shortest delay of the feed, in milliseconds, that counts as a fault and is logged. */
export const LONG_DELAY = 60_000;

const GAUGES = {
  'svc.audit.feed.delay': {
    description: 'The time for which the oldest audit event waits to appear in the feed',
    unit: 's',
  },
} as const;

/**
 * Reads twice a minute how long the oldest audit event waits to appear in the feed. With thousands
 * of organizations each look is at some of them, and the delay is the longest one of a round
 * through all. The delay is exported as a metric by OTLP. A long delay is logged as a warning under
 * `security`, because an open transaction then hides later events from the readers of the feed.
 */
export class FeedWatch {
  readonly #security = new Logger('security');
  readonly #worker: QueueWorker;
  #delay = 0;
  /** The longest delay of the last round through all organizations, and of the present one. */
  #rounds = { last: 0, present: 0 };
  /** The organization after which the next look begins; undefined if it begins a round. */
  #after: string | undefined;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
  ) {
    const name = 'The look at the delay of the audit log';
    const drain = () => this.look();
    const log = new Logger('audit');
    this.#worker = new QueueWorker(clock, { drain, poll: INTERVAL, log, name });
  }

  start(): void {
    const values = () => ({ 'svc.audit.feed.delay': this.#delay / 1000 });
    observeGauges(GAUGES, () => [{ attributes: {}, values: values() }]);
    this.#worker.start();
  }

  stop(): Promise<void> {
    return this.#worker.stop();
  }

  /** Reads the delay. If it is long, it warns, but at most once in {@link REMIND} milliseconds. */
  async look(): Promise<void> {
    await this.#goOn();
    this.#delay = Math.max(this.#rounds.last, this.#rounds.present);
    if (this.#delay < LONG_DELAY) {
      this.#warnedAt = Number.NEGATIVE_INFINITY;
      return;
    }
    const now = this.clock.monotonic();
    if (now - this.#warnedAt < REMIND) return;
    this.#warnedAt = now;
    this.#security.warn(
      { oldestSeconds: Math.round(this.#delay / 1000) },
      'The feed of the audit log waits for an open transaction: end it (docs/guides/monitoring.md)',
    );
  }

  /** Looks at the next organizations, and ends the round after the last one. */
  async #goOn(): Promise<void> {
    const ends = this.clock.monotonic() + LOOKING.longest;
    do {
      const { delay, next } = await feedDelayIn(this.dataSource.manager, this.#after);
      this.#after = next;
      const present = Math.max(this.#rounds.present, delay);
      this.#rounds =
        next === undefined ? { last: present, present: 0 } : { ...this.#rounds, present };
    } while (this.#after !== undefined && this.clock.monotonic() < ends);
  }
}
