import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { Clock } from '#platform/clock/clock.js';
import { newUuid, Random } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { listenTo, type Listening } from '#platform/database/queues/listening.js';
import { QueueWorker } from '#platform/database/queues/queue-worker.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { TokenSigningKeys } from '../token-signing/token-signing-keys.service.js';
import { chooseTurns, REGISTERED_LIMITS, rememberAnswer, type LaneLimits } from './fair-turns.js';
import { ANSWER_WITHIN, wordsOf } from './failure-words.js';
import { LOGOUT_TOKEN_TYPE, logoutClaims } from './logout-token.js';
import { afterFailure, retryAfterOf, type Answer } from './next-try.js';
import {
  buryTaken,
  deliverTaken,
  KIND,
  LEASE,
  listDueClients,
  postponeTaken,
  removeTaken,
  takeNotices,
  type TakenNotice,
} from './notice-queue.repository.js';
import { receiverOf, type Receiver } from './receiver.js';

/** Milliseconds between two reads of the queue. A commit of any replica wakes it at once. */
const POLL = 1_000;

/** The latest beginning of a request after the notice was taken, in milliseconds. */
const SEND_WITHIN = LEASE * 1000 - 2 * ANSWER_WITHIN;

/**
 * The requests under way in a replica: 20, of them 4 to clients that registered themselves. A part
 * of them is for clients that are known to take notices.
 */
const LANES = {
  registered: {
    selfRegistered: false,
    limits: REGISTERED_LIMITS,
  },
  self: {
    selfRegistered: true,
    limits: { most: 4, ofTenant: 2, ofClient: 1, unproven: 3, unprovenOfTenant: 2, failing: 2 },
  },
} as const satisfies Record<string, { selfRegistered: boolean; limits: LaneLimits }>;

type Lane = (typeof LANES)[keyof typeof LANES];

/** Sends logout tokens to clients, from a queue in the database. */
@Injectable()
export class LogoutSender implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly #log = new Logger('notices');
  readonly #security = new Logger('security');
  readonly #underWay = new Map<TakenNotice, Promise<void>>();
  /** For each client, true if it took the last notice, and false if it did not. */
  readonly #took = new Map<string, boolean>();
  readonly #last = new Map<Lane, string>();
  /** The lanes that are read next; a poll reads all. */
  readonly #wanted = new Set<Lane>();
  #polledAt = Number.NEGATIVE_INFINITY;
  #listening: Listening | undefined;
  readonly #worker: QueueWorker;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'http'>,
    private readonly dataSource: DataSource,
    private readonly tokenSigningKeys: TokenSigningKeys,
    private readonly outboundHttp: OutboundHttp,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {
    const drain = () => this.#begin();
    const name = 'The queue of logout notices';
    this.#worker = new QueueWorker(clock, { drain, poll: POLL, log: this.#log, name });
  }

  onApplicationBootstrap(): void {
    this.#listening = listenTo(this.dataSource, 'logout_notices', () => this.wake());
    this.#worker.start();
  }

  /** Waits for the requests that are under way. */
  async beforeApplicationShutdown(): Promise<void> {
    const stopped = this.#worker.stop();
    await this.#listening?.stop();
    await stopped;
    await Promise.all(this.#underWay.values());
  }

  /** Makes the worker read all lanes of the queue at once. */
  wake(): void {
    this.#lookAt(Object.values(LANES));
  }

  #lookAt(lanes: readonly Lane[]): void {
    for (const lane of lanes) this.#wanted.add(lane);
    this.#worker.wake();
  }

  /** Takes due notices and begins their requests, as many as may be under way at the same time. */
  async #begin(): Promise<void> {
    for (const lane of this.#lanesToRead()) {
      for (let isEmpty = false; !isEmpty;) {
        const takenAt = this.clock.monotonic();
        const taken = await this.#take(lane);
        for (const notice of taken) this.#underWay.set(notice, this.#settled(notice, takenAt));
        isEmpty = taken.length === 0;
      }
    }
  }

  /**
   * Returns the lanes that have changed since the last read. Once in {@link POLL} it returns all
   * lanes, because no event announces that a retry is due.
   */
  #lanesToRead(): readonly Lane[] {
    const now = this.clock.monotonic();
    const isPoll = this.#wanted.size === 0 || now - this.#polledAt >= POLL;
    if (isPoll) this.#polledAt = now;
    const lanes = isPoll ? Object.values(LANES) : [...this.#wanted];
    this.#wanted.clear();
    return lanes;
  }

  async #take(lane: Lane): Promise<TakenNotice[]> {
    const { selfRegistered, limits } = lane;
    const busy = [...this.#underWay.keys()].filter((one) => one.selfRegistered === selfRegistered);
    if (busy.length >= limits.most || this.#worker.isStopping) return [];
    const { manager } = this.dataSource;
    const due = await listDueClients(manager, selfRegistered);
    const { counts, last } = chooseTurns(due, {
      limits,
      busy,
      last: this.#last.get(lane) ?? '',
      tookLast: (clientId) => this.#took.get(clientId),
    });
    if (counts.size === 0) return [];
    this.#last.set(lane, last);
    return takeNotices(manager, counts, selfRegistered);
  }

  /**
   * Sends a notice, and removes or postpones it by the answer. If the database fails, a sender
   * takes the notice again after its lease.
   *
   * @param takenAt a time before the lease began
   */
  async #settled(notice: TakenNotice, takenAt: number): Promise<void> {
    try {
      const receiver = notice.isOvertaken ? undefined : receiverOf(notice.metadata ?? {});
      if (receiver)
        await this.#settle(notice, await this.#send(notice, receiver, takenAt), takenAt);
      else await removeTaken(this.dataSource.manager, notice);
    } catch (error) {
      this.#worker.note(error);
    } finally {
      this.#underWay.delete(notice);
      this.#lookAt([notice.selfRegistered ? LANES.self : LANES.registered]);
    }
  }

  async #send(notice: TakenNotice, receiver: Receiver, takenAt: number): Promise<Answer> {
    try {
      const token = await this.#mint(notice, receiver);
      if (this.clock.monotonic() - takenAt > SEND_WITHIN) throw new Error('the signature was late');
      const { status, headers } = await this.outboundHttp.fetch(receiver.uri, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ logout_token: token }).toString(),
        within: ANSWER_WITHIN,
      });
      const told = retryAfterOf(headers.get('retry-after'), this.clock.milliseconds());
      const isDelivered = status === 200 || status === 204;
      return { isDelivered, status, result: `answer ${status}`, told };
    } catch (error) {
      const { clientId, id } = notice;
      this.#log.debug({ clientId, noticeId: id, err: error }, 'a logout notice got no answer');
      return { isDelivered: false, status: undefined, result: wordsOf(error) };
    }
  }

  /** Signs the logout token of one try: each try has its own id and times. */
  #mint({ clientId, userId, sid }: TakenNotice, { algorithm }: Receiver): Promise<string> {
    const claims = logoutClaims({
      issuer: this.config.http.baseUrl,
      clientId,
      subject: userId,
      sid,
      jti: newUuid(),
      issuedAt: this.clock.seconds(),
    });
    return this.tokenSigningKeys.sign(algorithm, claims, LOGOUT_TOKEN_TYPE);
  }

  async #settle(notice: TakenNotice, answer: Answer, takenAt: number): Promise<void> {
    const { manager } = this.dataSource;
    const { clientId, id } = notice;
    rememberAnswer(this.#took, clientId, answer.isDelivered);
    if (answer.isDelivered) {
      await deliverTaken(manager, notice);
      return;
    }
    const left = notice.left - (this.clock.monotonic() - takenAt);
    const { failure, pause } = afterFailure(answer, notice, left, this.random);
    if (pause !== undefined) await postponeTaken(manager, notice, failure, pause);
    else if (await buryTaken(manager, notice, failure)) {
      // A user can register many clients: they must not hide another warning.
      const log = notice.selfRegistered ? this.#log : this.#security;
      log.warn(
        { clientId, noticeId: id, kind: KIND, result: answer.result },
        'An application did not take a logout notice, which is a dead letter now',
      );
    }
  }
}
