import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import { listenTo, type Listening } from '#platform/database/queues/listening.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { ANSWER_WITHIN, wordsOf } from '../logout-notices/failure-words.js';
import { chooseTurns, REGISTERED_LIMITS, rememberAnswer } from '../logout-notices/fair-turns.js';
import { afterFailure, retryAfterOf, type Answer } from '../logout-notices/next-try.js';
import {
  buryTaken,
  deliverTaken,
  dropStale,
  LEASE,
  listDueReceivers,
  postponeTaken,
  takeSignals,
  type TakenSignal,
} from './event-queue.repository.js';
import { PolledSignals } from './polled-signals.service.js';
import { SignalTokens } from './signal-tokens.service.js';

/** Milliseconds between two reads of the queue. A commit of any replica wakes it at once. */
const POLL = 1_000;

/** Milliseconds between two looks for events that were kept for too long. */
const TRIM = 600_000;

/** The rows that one statement drops: a statement stays far below its time limit. */
const BATCH = 1_000;

/** The latest beginning of a request after the event was taken, in milliseconds. */
const SEND_WITHIN = LEASE * 1000 - 2 * ANSWER_WITHIN;

/** The answers that end an event (RFC 8935 §2.2 names 202; some receivers answer 200 or 204). */
const TAKEN: ReadonlySet<number> = new Set([200, 202, 204]);

/** Pushes security event tokens to receivers (RFC 8935), from a queue in the database. */
@Injectable()
export class SignalSender implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #log = new Logger('signals');
  readonly #security = new Logger('security');
  readonly #underWay = new Map<TakenSignal, Promise<void>>();
  /** For each application, whether it took the last event. */
  readonly #took = new Map<string, boolean>();
  #last = '';
  #trimmedAt = Number.NEGATIVE_INFINITY;
  #listening: Listening | undefined;
  readonly #worker: QueueWorker;

  constructor(
    private readonly dataSource: DataSource,
    private readonly signalTokens: SignalTokens,
    private readonly polledSignals: PolledSignals,
    private readonly outboundHttp: OutboundHttp,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    const drain = () => this.#begin();
    const name = 'The queue of signals';
    this.#worker = new QueueWorker(clock, { drain, poll: POLL, log: this.#log, name });
  }

  onApplicationBootstrap(): void {
    this.#listening = listenTo(this.dataSource, 'signal_events', () => {
      this.polledSignals.wake();
      this.wake();
    });
    this.#worker.start();
  }

  /** Waits for the requests that are under way. */
  async beforeApplicationShutdown(): Promise<void> {
    const stopped = this.#worker.stop();
    await this.#listening?.stop();
    await stopped;
    await Promise.all(this.#underWay.values());
  }

  /** Looks at the queue at once. */
  wake(): void {
    this.#worker.wake();
  }

  /** Drops what streams have kept for too long, in batches. Returns the number of events. */
  async dropStale(): Promise<number> {
    let total = 0;
    for (let n = BATCH; n === BATCH && !this.#worker.isStopping; total += n) {
      n = await dropStale(this.dataSource.manager, BATCH);
    }
    return total;
  }

  /**
   * Takes due events from the queue and starts to send them, until `REGISTERED_LIMITS` is reached
   * or none is due. It does not wait for the answers. From time to time it first drops stale
   * events.
   */
  async #begin(): Promise<void> {
    const now = this.clock.monotonic();
    if (now - this.#trimmedAt >= TRIM) {
      this.#trimmedAt = now;
      await this.dropStale();
    }
    for (let isEmpty = false; !isEmpty;) {
      const takenAt = this.clock.monotonic();
      const taken = await this.#take();
      for (const signal of taken) this.#underWay.set(signal, this.#settled(signal, takenAt));
      isEmpty = taken.length === 0;
    }
  }

  async #take(): Promise<TakenSignal[]> {
    const busy = [...this.#underWay.keys()].map(({ clientId, orgId: tenantId }) => ({
      clientId,
      tenantId,
    }));
    if (busy.length >= REGISTERED_LIMITS.most || this.#worker.isStopping) return [];
    const { manager } = this.dataSource;
    const due = await listDueReceivers(manager);
    const { counts, last } = chooseTurns(due, {
      limits: REGISTERED_LIMITS, // beside those of logout notices
      busy,
      last: this.#last,
      tookLast: (clientId) => this.#took.get(clientId),
    });
    if (counts.size === 0) return [];
    this.#last = last;
    return takeSignals(manager, counts);
  }

  /**
   * Sends an event and settles it. A fault of the database leaves the event to its lease.
   *
   * @param takenAt a time before the lease began
   */
  async #settled(signal: TakenSignal, takenAt: number): Promise<void> {
    try {
      await this.#settle(signal, await this.#send(signal, takenAt), takenAt);
    } catch (error) {
      this.#worker.note(error);
    } finally {
      this.#underWay.delete(signal);
      this.wake();
    }
  }

  async #send(signal: TakenSignal, takenAt: number): Promise<Answer> {
    try {
      const authorization = await this.signalTokens.openHeader(signal.authorizationSealed);
      const token = await this.signalTokens.mint(signal);
      if (this.clock.monotonic() - takenAt > SEND_WITHIN) throw new Error('the signature was late');
      const { status, headers } = await this.outboundHttp.fetch(signal.endpointUrl, {
        method: 'POST',
        headers: {
          'content-type': 'application/secevent+jwt',
          accept: 'application/json',
          ...(authorization === undefined ? {} : { authorization }),
        },
        body: token,
        within: ANSWER_WITHIN,
      });
      const told = retryAfterOf(headers.get('retry-after'), this.clock.milliseconds());
      return { isDelivered: TAKEN.has(status), status, result: `answer ${status}`, told };
    } catch (error) {
      const { clientId, id } = signal;
      this.#log.debug({ clientId, signalId: id, err: error }, 'a signal got no answer');
      return { isDelivered: false, status: undefined, result: wordsOf(error) };
    }
  }

  async #settle(signal: TakenSignal, answer: Answer, takenAt: number): Promise<void> {
    const { manager } = this.dataSource;
    const { clientId, id } = signal;
    rememberAnswer(this.#took, clientId, answer.isDelivered);
    if (answer.isDelivered) {
      await deliverTaken(manager, signal);
      return;
    }
    const left = signal.left - (this.clock.monotonic() - takenAt);
    const { failure, pause } = afterFailure(answer, signal, left, this.random);
    if (pause !== undefined) await postponeTaken(manager, signal, failure, pause);
    else if (await buryTaken(manager, signal, failure)) {
      this.#security.warn(
        { clientId, signalId: id, result: answer.result },
        'An application did not take a signal, which is a dead letter now',
      );
    }
  }
}
