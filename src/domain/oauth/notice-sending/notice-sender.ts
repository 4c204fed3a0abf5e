import type { Logger } from '@nestjs/common';
import type { Clock } from '#platform/clock/clock.js';
import type { Random } from '#platform/clock/random.js';
import { listenTo, type Listening } from '#platform/database/queues/listening.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import type { OutboundHttp, OutboundRequest } from '#platform/outbound/outbound-http.service.js';
import { ANSWER_WITHIN, GaveWay, OwnFault, wordsOf } from './failure-words.js';
import {
  chooseTurns,
  rememberAnswer,
  type BusyRequest,
  type DueClient,
  type LaneLimits,
} from './fair-turns.js';
import { afterFailure, retryAfterOf, type Answer, type TriedRow } from './next-try.js';

/**
 * Milliseconds between two reads of the queue. If any replica commits a new row, the sender reads
 * the queue at once.
 */
const POLL = 1_000;

/**
 * The seconds for which a row is reserved for one sender, by the clock of the database, because the
 * clocks of replicas differ. The lease is longer than a signature and a request last, so that no
 * two senders send one row at the same time. It is short, so that another sender soon takes over if
 * a sender dies.
 */
export const LEASE = 15;

/**
 * The milliseconds after the reservation of a row within which its request must begin, so that the
 * request ends before the lease does.
 */
const SEND_WITHIN = LEASE * 1000 - 2 * ANSWER_WITHIN;

/** The milliseconds after which a request may be ended in favor of a client that waits. */
const SLOW = 750;

/**
 * The result of an attempt that sent no request because of a fault of the service itself, such as a
 * slow database. It does not count as an attempt.
 */
const UNSENT = Symbol('unsent');

/** A row of a queue that a sender has reserved for itself. */
export interface TakenRow extends TriedRow {
  readonly id: string;
  readonly clientId: string;
  /** The milliseconds from the reservation until the service gives the row up. */
  readonly left: number;
}

/** The result of a failed attempt, as the row records it. */
export interface Failure {
  /**
   * The words that an admin reads: the status of the response, or the reason why there was none.
   */
  readonly result: string;
  /** The number of responses so far that refused the row, such as status 400. */
  readonly refusals: number;
}

/**
 * A part of a queue that has limits of its own, such as the notices to clients that registered
 * themselves.
 */
export interface Lane<Row> {
  readonly limits: LaneLimits;
  /** Lists the clients that have a row which can be sent now. */
  due(tx: EntityManager): Promise<DueClient[]>;
  /**
   * Lists those of the given clients that have a row which can be sent now. It is used after a
   * request to such a client. The method is missing if {@link due} is as fast.
   */
  dueOf?(tx: EntityManager, clientIds: readonly string[]): Promise<DueClient[]>;
  /**
   * Reserves rows that can be sent now, until the lease ends. `counts` has the number of rows for
   * each client.
   */
  take(tx: EntityManager, counts: ReadonlyMap<string, number>): Promise<Row[]>;
}

/** The HTTP request by which a row is sent: a POST with a body and headers to `uri`. */
export interface NoticeRequest extends Pick<OutboundRequest, 'headers' | 'body'> {
  readonly uri: string;
}

/** The parts of a {@link NoticeSender} that differ between the kinds of notices. */
export interface NoticeWork<Row extends TakenRow> {
  /** The channel of LISTEN/NOTIFY on which the database announces new rows. */
  readonly channel: string;
  /** The queue as the subject of a log line, such as `The queue of logout notices`. */
  readonly name: string;
  readonly log: Logger;
  readonly lanes: readonly Lane<Row>[];
  /** The status codes of responses by which a receiver accepts a row. */
  readonly taking: ReadonlySet<number>;
  /**
   * Reads what an admin must know, in words, from the response of a receiver that accepted a row.
   * The method is missing if only the status counts.
   */
  remark?(row: Row, answer: Response): Promise<string | undefined>;
  tenantOf(row: Row): string;
  /**
   * Makes the request for one attempt to send a row; undefined if the row is not to be sent any
   * more.
   */
  request(row: Row): Promise<NoticeRequest | undefined>;
  /**
   * Deletes a row that its client accepted, and counts it. `result` is the status of the response
   * in words, with the remark.
   */
  deliver(tx: EntityManager, row: Row, result: string): Promise<void>;
  /** Deletes a row that is not to be sent any more. The method is missing if every row is sent. */
  remove?(tx: EntityManager, row: Row): Promise<void>;
  /**
   * Releases a row for which no request was sent because of a fault of the service itself, so that
   * the attempt does not count. The method is missing if such an attempt counts as failed.
   */
  release?(tx: EntityManager, row: Row): Promise<void>;
  /**
   * Returns true for the status of a response that refuses the row itself, so that few attempts
   * follow. If the method is missing, only status 400 refuses a row.
   */
  isRefusal?(status: number): boolean;
  /** Releases a row, and sets its next attempt after a pause, in milliseconds. */
  postpone(tx: EntityManager, row: Row, failure: Failure, pause: number): Promise<void>;
  /** Gives a row up as a dead letter, and logs this for operators. */
  bury(tx: EntityManager, row: Row, failure: Failure): Promise<void>;
  /**
   * Called with the text of each NOTIFY on `channel`, by which the database announces new rows. The
   * text is empty if any rows may be new.
   */
  onNews?(payload: string): void;
  /** Called before each read of the queue, for further work on the queue. */
  beforeRead?(): Promise<void>;
}

/** The dependencies of a {@link NoticeSender}. */
export interface SenderParts {
  readonly dataSource: DataSource;
  readonly outboundHttp: Pick<OutboundHttp, 'fetch'>;
  readonly clock: Clock;
  readonly random: Random;
}

/** The clients for which a lane (a part of the queue) is read: all, or some by their ids. */
type Clients = 'all' | Set<string>;

/** One attempt to send a row. The times are those of {@link Clock.monotonic}. */
interface Try {
  /** The time just before the statement that reserved the row. */
  readonly takenAt: number;
  /**
   * The time at which the request began; undefined before. Until then the row waits for the service
   * itself and not for its client.
   */
  askedAt: number | undefined;
  readonly giveWay: AbortController;
}

/** A row for which an attempt has begun and has no result yet. */
interface UnderWay<Row> {
  readonly lane: Lane<Row>;
  readonly attempt: Try;
  /**
   * True if the client did not accept the row before this one. The request is then never ended in
   * favor of another client.
   */
  readonly isPatient: boolean;
  readonly done: Promise<void>;
}

/**
 * Sends the rows of a queue, which are notices or events, to clients. Depending on the response, it
 * deletes a row, releases it for another attempt, or gives it up as a dead letter.
 */
export class NoticeSender<Row extends TakenRow> {
  /** The requests that have no response yet, the oldest first. */
  readonly #underWay = new Map<Row, UnderWay<Row>>();
  /** For each client, true if it accepted the last row, and false if it did not. */
  readonly #took = new Map<string, boolean>();
  readonly #last = new Map<Lane<Row>, string>();
  /**
   * The lanes (parts of the queue) that are read next, each for all clients or for some. Every
   * {@link POLL} milliseconds all lanes are read for all clients.
   */
  readonly #wanted = new Map<Lane<Row>, Clients>();
  /**
   * The lanes in which clients had to wait at the last read, because of the limits. When a request
   * ends, such a lane is read for all clients.
   */
  readonly #leftOver = new Set<Lane<Row>>();
  #polledAt = Number.NEGATIVE_INFINITY;
  #listening: Listening | undefined;
  readonly #worker: QueueWorker;

  constructor(
    private readonly parts: SenderParts,
    private readonly work: NoticeWork<Row>,
  ) {
    const { log, name } = work;
    const drain = () => this.#begin();
    this.#worker = new QueueWorker(parts.clock, { drain, poll: POLL, log, name });
  }

  /** True once {@link stop} was called. */
  get isStopping(): boolean {
    return this.#worker.isStopping;
  }

  start(): void {
    this.#listening = listenTo(this.parts.dataSource, this.work.channel, (payload) => {
      this.work.onNews?.(payload);
      this.wake();
    });
    this.#worker.start();
  }

  /** Stops the sender, and waits for the requests that are already sent. */
  async stop(): Promise<void> {
    const stopped = this.#worker.stop();
    await this.#listening?.stop();
    await stopped;
    await Promise.all([...this.#underWay.values()].map(({ done }) => done));
  }

  /** Makes the sender read the whole queue at once. */
  wake(): void {
    this.#lookAt(this.work.lanes);
  }

  #lookAt(lanes: readonly Lane<Row>[]): void {
    for (const lane of lanes) this.#wanted.set(lane, 'all');
    this.#worker.wake();
  }

  /**
   * Makes the sender read the further rows of a client whose request has ended. If other clients of
   * the lane wait, it reads the rows of all clients.
   */
  #lookAgain(lane: Lane<Row>, clientId: string): void {
    const wanted = this.#wanted.get(lane) ?? new Set();
    if (wanted === 'all' || !lane.dueOf || this.#leftOver.has(lane)) {
      this.#lookAt([lane]);
      return;
    }
    this.#wanted.set(lane, wanted.add(clientId));
    this.#worker.wake();
  }

  /**
   * Reserves rows that can be sent now and sends their requests, as many as the limits allow at the
   * same time.
   */
  async #begin(): Promise<void> {
    await this.work.beforeRead?.();
    for (const [lane, clients] of this.#lanesToRead()) {
      const skipped = new Set<string>();
      for (;;) {
        const takenAt = this.parts.clock.monotonic();
        const taken = await this.#take(lane, clients, skipped);
        if (!taken) break;
        for (const row of taken) this.#underWay.set(row, this.#sent(lane, row, takenAt));
      }
    }
  }

  /**
   * Returns the lanes (parts of the queue) that have changed since the last read, with the clients
   * of the change. Every {@link POLL} milliseconds it returns all lanes, because nothing announces
   * that the pause of a row is over.
   */
  #lanesToRead(): readonly (readonly [Lane<Row>, Clients])[] {
    const now = this.parts.clock.monotonic();
    const isPoll = this.#wanted.size === 0 || now - this.#polledAt >= POLL;
    if (isPoll) this.#polledAt = now;
    const lanes = isPoll
      ? this.work.lanes.map((lane) => [lane, 'all'] as const)
      : [...this.#wanted];
    this.#wanted.clear();
    return lanes;
  }

  /**
   * Reserves the rows of the clients whose turn it is. Returns undefined if no client may get a
   * request now.
   *
   * @param skipped the clients with no row left for this sender, because another sender reserved
   *   their rows first. The method adds to this set.
   */
  async #take(lane: Lane<Row>, clients: Clients, skipped: Set<string>): Promise<Row[] | undefined> {
    const { limits } = lane;
    const busy = this.#busyOf(lane);
    const isFull = busy.length >= limits.most && !busy.some(({ isSlow }) => isSlow);
    if (isFull) this.#leftOver.add(lane);
    if (isFull || this.isStopping) return undefined;
    const { manager } = this.parts.dataSource;
    const listed =
      clients === 'all' || !lane.dueOf
        ? await lane.due(manager)
        : await lane.dueOf(manager, [...clients]);
    const due = listed.filter(({ clientId }) => !skipped.has(clientId));
    const { counts, last, yielding } = chooseTurns(due, {
      limits,
      busy,
      last: this.#last.get(lane) ?? '',
      tookLast: (clientId) => this.#took.get(clientId),
    });
    if (due.some(({ clientId }) => !counts.has(clientId))) this.#leftOver.add(lane);
    else if (clients === 'all') this.#leftOver.delete(lane);
    for (const { row } of yielding) this.#underWay.get(row)?.attempt.giveWay.abort(new GaveWay());
    if (counts.size === 0) return undefined;
    this.#last.set(lane, last);
    const taken = await lane.take(manager, counts);
    const found = new Set(taken.map(({ clientId }) => clientId));
    for (const clientId of counts.keys()) if (!found.has(clientId)) skipped.add(clientId);
    return taken;
  }

  #busyOf(lane: Lane<Row>): (BusyRequest & { readonly row: Row })[] {
    const now = this.parts.clock.monotonic();
    return [...this.#underWay]
      .filter(([, underWay]) => underWay.lane === lane)
      .map(([row, { attempt, isPatient }]) => ({
        row,
        clientId: row.clientId,
        tenantId: this.work.tenantOf(row),
        isSlow: !isPatient && now - (attempt.askedAt ?? now) >= SLOW,
      }));
  }

  /**
   * Starts to send a row.
   *
   * @param takenAt the time just before the statement that reserved the row
   */
  #sent(lane: Lane<Row>, row: Row, takenAt: number): UnderWay<Row> {
    const attempt = { takenAt, askedAt: undefined, giveWay: new AbortController() };
    const isPatient = this.#took.get(row.clientId) === false;
    const done = this.#settled(row, attempt).finally(() => {
      this.#underWay.delete(row);
      this.#lookAgain(lane, row.clientId);
    });
    return { lane, attempt, isPatient, done };
  }

  /**
   * Sends a row and stores the result. After an error, such as a failure of the database, the row
   * keeps its lease, and a sender reserves it again after the lease.
   */
  async #settled(row: Row, attempt: Try): Promise<void> {
    try {
      const { manager } = this.parts.dataSource;
      const answer = await this.#send(row, attempt);
      if (answer === UNSENT) await this.work.release?.(manager, row);
      else if (answer) await this.#settle(row, answer, attempt.takenAt);
      else await this.work.remove?.(manager, row);
    } catch (error) {
      this.#worker.note(error);
    }
  }

  /**
   * Sends a row and returns the result. Returns undefined for a row that is not to be sent any
   * more, and `UNSENT` for one that is released because of a fault of the service itself.
   */
  async #send(row: Row, attempt: Try): Promise<Answer | typeof UNSENT | undefined> {
    const { clock, outboundHttp } = this.parts;
    const { signal } = attempt.giveWay;
    try {
      const request = await this.work.request(row);
      if (!request) return undefined;
      attempt.askedAt = clock.monotonic();
      if (attempt.askedAt - attempt.takenAt > SEND_WITHIN)
        throw new OwnFault('the request was late');
      const { uri, headers, body } = request;
      const options = { method: 'POST', headers, body, signal, within: ANSWER_WITHIN };
      const answer = await outboundHttp.fetch(uri, options);
      const told = retryAfterOf(answer.headers.get('retry-after'), clock.milliseconds());
      const { status } = answer;
      const isDelivered = this.work.taking.has(status);
      const remark = isDelivered ? await this.work.remark?.(row, answer) : undefined;
      const result = `answer ${status}${remark === undefined ? '' : `: ${remark}`}`;
      return { isDelivered, status, result, told, isRefusal: this.work.isRefusal?.(status) };
    } catch (error) {
      if (error instanceof OwnFault && this.work.release) return UNSENT;
      const { clientId, id } = row;
      this.work.log.debug({ clientId, id, err: error }, 'a notice got no answer');
      const result = wordsOf(signal.aborted ? signal.reason : error);
      return { isDelivered: false, status: undefined, result, hasGivenWay: signal.aborted };
    }
  }

  async #settle(row: Row, answer: Answer, takenAt: number): Promise<void> {
    const { dataSource, clock, random } = this.parts;
    const { manager } = dataSource;
    rememberAnswer(this.#took, row.clientId, answer.isDelivered);
    if (answer.isDelivered) {
      await this.work.deliver(manager, row, answer.result);
      return;
    }
    const left = row.left - (clock.monotonic() - takenAt);
    const { failure, pause } = afterFailure(answer, row, left, random);
    if (pause === undefined) await this.work.bury(manager, row, failure);
    else await this.work.postpone(manager, row, failure, pause);
  }
}
