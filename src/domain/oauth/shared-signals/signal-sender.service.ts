import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { REGISTERED_LIMITS } from '../notice-sending/fair-turns.js';
import { NoticeSender, type Failure, type NoticeRequest } from '../notice-sending/notice-sender.js';
import { Resealing } from '../notice-sending/resealing.js';
import {
  buryTaken,
  deliverTaken,
  dropStale,
  KIND,
  listDueReceivers,
  postponeTaken,
  takeSignals,
  type TakenSignal,
} from './event-queue.repository.js';
import { PolledSignals } from './polled-signals.service.js';
import { SignalTokens } from './signal-tokens.service.js';

/** Milliseconds between two searches for events that have waited for too long. */
const TRIM = 600_000;

/** The most rows that one statement deletes, so that it stays far below its time limit. */
const BATCH = 1_000;

/** Pushes security event tokens to receivers (RFC 8935), from a queue in the database. */
@Injectable()
export class SignalSender implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('signals');
  readonly #security = new Logger('security');
  readonly #sender: NoticeSender<TakenSignal>;
  #trimmedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly dataSource: DataSource,
    private readonly signalTokens: SignalTokens,
    private readonly polledSignals: PolledSignals,
    outboundHttp: OutboundHttp,
    private readonly clock: Clock,
    random: Random,
  ) {
    const parts = { dataSource, outboundHttp, clock, random };
    const resealing = new Resealing(clock, this.#log, () => signalTokens.sealAgain());
    this.#sender = new NoticeSender(parts, {
      channel: 'signal_events',
      name: 'The queue of signals',
      log: this.#log,
      // The limits hold for security events alone; logout notices have limits of their own.
      lanes: [{ limits: REGISTERED_LIMITS, due: listDueReceivers, take: takeSignals }],
      // RFC 8935 §2.2 demands status 202, but some receivers respond with 200 or 204.
      taking: new Set([200, 202, 204]),
      tenantOf: ({ orgId }) => orgId,
      request: (signal) => this.#request(signal),
      deliver: deliverTaken,
      postpone: postponeTaken,
      bury: (tx, signal, failure) => this.#bury(tx, signal, failure),
      onNews: (streamId) => this.polledSignals.wake(streamId),
      beforeRead: async () => {
        await resealing.runIfDue();
        await this.#trim();
      },
    });
  }

  onApplicationBootstrap(): void {
    this.#sender.start();
  }

  /** Stops the sender, and waits for the requests that are already sent. */
  async stopWork(): Promise<void> {
    await this.#sender.stop();
  }

  /** Makes the sender read the queue at once, and not only at the next poll. */
  wake(): void {
    this.#sender.wake();
  }

  /**
   * Deletes, in batches of {@link BATCH}, the events that have waited in their streams for 7 days.
   * Returns the number of events.
   */
  async dropStale(): Promise<number> {
    let total = 0;
    for (let n = BATCH; n === BATCH && !this.#sender.isStopping; total += n) {
      n = await dropStale(this.dataSource.manager, BATCH);
    }
    return total;
  }

  /** Calls {@link dropStale}, unless the last call was less than {@link TRIM} milliseconds ago. */
  async #trim(): Promise<void> {
    const now = this.clock.monotonic();
    if (now - this.#trimmedAt < TRIM) return;
    this.#trimmedAt = now;
    await this.dropStale();
  }

  async #request(signal: TakenSignal): Promise<NoticeRequest> {
    const authorization = await this.signalTokens.openHeader(signal.authorizationSealed);
    return {
      uri: signal.endpointUrl,
      headers: {
        'content-type': 'application/secevent+jwt',
        accept: 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
      },
      body: await this.signalTokens.mint(signal),
    };
  }

  async #bury(tx: EntityManager, signal: TakenSignal, failure: Failure): Promise<void> {
    if (!(await buryTaken(tx, signal, failure))) return;
    const { clientId, id } = signal;
    this.#security.warn(
      { clientId, signalId: id, kind: KIND, result: failure.result },
      'An application did not take a signal, which is a dead letter now',
    );
  }
}
