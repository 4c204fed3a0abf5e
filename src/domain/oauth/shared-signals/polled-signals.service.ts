import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Clock } from '#platform/clock/clock.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { isUuid, toSingleLine } from '#platform/text/single-line.js';
import { acknowledge, buryTaken, findWaiting, readWaiting } from './event-queue.repository.js';
import { assertTokenHeld } from './signal-streams.service.js';
import { SignalTokens } from './signal-tokens.service.js';
import type { SignalStream, StreamCaller } from './streams.repository.js';

/** The longest time, in milliseconds, for which the response to a poll waits for events. */
const LONGEST_WAIT = 20_000;

/**
 * The same while the replica stops. A receiver polls again as soon as it has a response. If the
 * response did not wait, the receiver would poll in a loop, and the listeners would go on for ten
 * seconds, because they close after one second without a new request.
 */
const LAST_WAIT = 2_000;

/** The most events in the response to a poll. */
const MOST_EVENTS = 50;

/** The most characters of a receiver's error text about an event that are stored. */
const MOST_OF_FAULT = 200;

/** A poll: the request by which a receiver fetches security events (RFC 8936 §2.2). */
export interface Poll {
  /** The most events that the receiver wants; 0 if it only acknowledges earlier ones. */
  readonly most: number;
  readonly returnsImmediately: boolean;
  readonly acknowledged: readonly string[];
  /** The events that the receiver could not process, each with its error text. */
  readonly faults: Readonly<Record<string, string>>;
  /** Aborted if the receiver has closed the connection. */
  readonly signal: AbortSignal;
}

/** The response to a poll (RFC 8936 §2.3). */
export interface PolledEvents {
  /** The security event tokens by their `jti`. */
  readonly sets: Readonly<Record<string, string>>;
  readonly hasMore: boolean;
}

const NO_EVENTS: PolledEvents = { sets: {}, hasMore: false };

/**
 * The reason why a poll stops waiting: there may be new events, or another poll of the same stream
 * replaces it.
 */
type News = 'news' | 'replaced';

/**
 * Answers the polls of receivers with the oldest events of their streams. An event stays in the
 * queue until the receiver acknowledges it. So if a response is lost, no event is lost, and the
 * events keep their order.
 */
@Injectable()
export class PolledSignals implements OnModuleDestroy {
  /**
   * The functions that report {@link News} to waiting polls, by the id of the stream. A second poll
   * of the same stream ends the first one.
   */
  readonly #waiting = new Map<string, (news: News) => void>();
  #isStopping = false;

  constructor(
    private readonly dataSource: DataSource,
    private readonly signalTokens: SignalTokens,
    private readonly clock: Clock,
  ) {}

  /**
   * Answers all waiting polls, because the replica stops and must not wait for them. Nest calls
   * this method before the listeners wait for the requests in flight, of which the polls are a
   * part. A poll that comes afterwards waits for {@link LAST_WAIT} milliseconds at most.
   */
  onModuleDestroy(): void {
    this.#isStopping = true;
    for (const end of this.#waiting.values()) end('replaced');
  }

  /**
   * Makes the waiting poll of a stream read the queue again, because there may be new events. The
   * polls of all streams do so if the id is empty.
   */
  wake(streamId: string): void {
    if (streamId === '') for (const look of this.#waiting.values()) look('news');
    else this.#waiting.get(streamId)?.('news');
  }

  /**
   * Deletes the events that the receiver acknowledges, makes dead letters of those that it could
   * not process, and returns the next events. If there are none, the response may wait up to
   * {@link LONGEST_WAIT} milliseconds for events. If the token ends meanwhile, there are none.
   *
   * @throws DomainError unauthenticated if the token has ended since the request came
   */
  async poll({ id }: SignalStream, caller: StreamCaller, poll: Poll): Promise<PolledEvents> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      await assertTokenHeld(tx, caller);
      await this.#settle(tx, id, caller, poll);
    });
    if (poll.most === 0) return NO_EVENTS;
    const most = Math.min(poll.most, MOST_EVENTS);
    const { tokenHash } = caller;
    const wanted = { streamId: id, tokenHash };
    if (poll.returnsImmediately) return this.#read(wanted, most);
    const beganAt = this.clock.monotonic();
    for (;;) {
      // The poll begins to listen before it reads the queue, so that it misses no event in between.
      const { news, stop } = this.#listen(id);
      try {
        const found = await this.#read(wanted, most);
        const longest = this.#isStopping ? LAST_WAIT : LONGEST_WAIT;
        const left = beganAt + longest - this.clock.monotonic();
        if (Object.keys(found.sets).length > 0 || left <= 0) return found;
        const isOver = AbortSignal.any([poll.signal, AbortSignal.timeout(Math.ceil(left))]);
        if ((await settledOrAborted(news, isOver)) !== 'news') return NO_EVENTS;
      } finally {
        stop();
      }
    }
  }

  async #settle(
    tx: EntityManager,
    streamId: string,
    { clientId, orgId }: StreamCaller,
    poll: Poll,
  ): Promise<void> {
    const acknowledged = poll.acknowledged.filter(isUuid);
    if (acknowledged.length > 0) await acknowledge(tx, streamId, acknowledged);
    for (const [jti, words] of Object.entries(poll.faults)) {
      const event = isUuid(jti) ? await findWaiting(tx, streamId, jti) : undefined;
      if (!event) continue;
      const result = toSingleLine(`refused: ${words}`, MOST_OF_FAULT) ?? 'refused';
      await buryTaken(tx, { ...event, clientId, orgId }, { result, refusals: 1 });
    }
  }

  async #read(
    wanted: { readonly streamId: string; readonly tokenHash: Buffer },
    most: number,
  ): Promise<PolledEvents> {
    const found = await readWaiting(this.dataSource.manager, wanted, most + 1);
    const signals = found.slice(0, most);
    const sets = await Promise.all(
      signals.map(async (signal) => [signal.jti, await this.signalTokens.mint(signal)] as const),
    );
    return { sets: Object.fromEntries(sets), hasMore: found.length > most };
  }

  #listen(streamId: string): { readonly news: Promise<News>; readonly stop: () => void } {
    const { promise: news, resolve } = Promise.withResolvers<News>();
    this.#waiting.get(streamId)?.('replaced');
    this.#waiting.set(streamId, resolve);
    const stop = () => {
      if (this.#waiting.get(streamId) === resolve) this.#waiting.delete(streamId);
    };
    return { news, stop };
  }
}

/** Waits for a promise until a signal is aborted. Returns undefined if the signal came first. */
function settledOrAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>();
  const abort = () => resolve(undefined);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return Promise.race([promise, aborted]).finally(() => signal.removeEventListener('abort', abort));
}
