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
import { chooseTurns } from './fair-turns.js';
import { LOGOUT_TOKEN_TYPE, logoutClaims } from './logout-token.js';
import { nextTry, retryAfterOf } from './next-try.js';
import {
  buryTaken,
  listDueClients,
  postponeTaken,
  removeTaken,
  takeNotices,
  type TakenNotice,
} from './notice-queue.repository.js';
import { receiverOf, type Receiver } from './receiver.js';

/** Milliseconds between two reads of the queue. A commit of any replica wakes it at once. */
const POLL = 1_000;

/**
 * Milliseconds for which only one sender works on a notice. They are longer than a signature and a
 * request last, so that no notice is sent twice at once, and a sender that dies is replaced soon.
 */
const LEASE = 15_000;

/** Milliseconds for a whole request. */
const ANSWER_WITHIN = 5_000;

/** The latest beginning of a request after the notice was taken, in milliseconds. */
const SEND_WITHIN = LEASE - 2 * ANSWER_WITHIN;

/**
 * The requests under way in a replica: 20, of them 4 to clients that registered themselves. A
 * client gets one request at a time until it has taken a notice, so that a client that does not
 * respond occupies one request only. All clients that did not take their last notice share half of
 * the requests.
 */
const LANES = {
  registered: { selfRegistered: false, most: 16, ofTenant: 12, ofClient: 4 },
  self: { selfRegistered: true, most: 4, ofTenant: 2, ofClient: 1 },
} as const;

type Lane = (typeof LANES)[keyof typeof LANES];

/** The number of clients whose last answer a sender remembers. */
const MOST_REMEMBERED = 10_000;

/** The outcome of a try: delivered, or the words about the failure. */
interface Answer {
  readonly isDelivered: boolean;
  readonly status: number | undefined;
  readonly result: string;
  readonly told?: number | undefined;
}

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

  /** Looks at the queue at once. */
  wake(): void {
    this.#lookAt(Object.values(LANES));
  }

  #lookAt(lanes: readonly Lane[]): void {
    for (const lane of lanes) this.#wanted.add(lane);
    this.#worker.wake();
  }

  /** Begins as many requests as may be under way. */
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
    const { selfRegistered, most } = lane;
    const busy = [...this.#underWay.keys()].filter((one) => one.selfRegistered === selfRegistered);
    if (busy.length >= most || this.#worker.isStopping) return [];
    const { manager } = this.dataSource;
    const failing = busy.filter(({ clientId }) => this.#took.get(clientId) === false).length;
    const now = this.clock.now();
    const due = await listDueClients(manager, selfRegistered, now);
    const { counts, last } = chooseTurns(due, {
      free: most - busy.length,
      ofClient: tally(busy, ({ clientId }) => clientId),
      ofTenant: tally(busy, ({ tenantId }) => tenantId),
      last: this.#last.get(lane) ?? '',
      mostOf: (clientId) => (this.#took.get(clientId) === true ? lane.ofClient : 1),
      mostOfTenant: lane.ofTenant,
      tookLast: (clientId) => this.#took.get(clientId),
      freeForFailing: Math.max(0, most / 2 - failing),
    });
    if (counts.size === 0) return [];
    this.#last.set(lane, last);
    const leaseEnds = new Date(now.getTime() + LEASE);
    return takeNotices(manager, counts, { selfRegistered, now, leaseEnds });
  }

  /**
   * Sends a notice, and removes or postpones it by the answer. If the database fails, a sender
   * takes the notice again after its lease.
   *
   * @param takenAt a time before the lease began
   */
  async #settled(notice: TakenNotice, takenAt: number): Promise<void> {
    try {
      const receiver = receiverOf(notice.metadata ?? {});
      if (receiver) await this.#settle(notice, await this.#send(notice, receiver, takenAt));
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
      return { isDelivered: false, status: undefined, result: 'no answer' };
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

  async #settle(notice: TakenNotice, answer: Answer): Promise<void> {
    const { manager } = this.dataSource;
    const { clientId, id } = notice;
    if (this.#took.size >= MOST_REMEMBERED) this.#took.clear();
    this.#took.set(clientId, answer.isDelivered);
    if (answer.isDelivered) {
      await removeTaken(manager, notice);
      return;
    }
    const isRefusal = answer.status === 400;
    const refusals = notice.refusals + (isRefusal ? 1 : 0);
    const now = this.clock.milliseconds();
    const at = nextTry({
      tries: notice.tries,
      refusals: isRefusal ? refusals : 0,
      now,
      giveUpAt: notice.giveUpAt.getTime(),
      told: answer.told,
      chance: this.random.bytes(1).readUInt8() / 255,
    });
    const failure = { result: answer.result, refusals };
    if (at !== undefined) await postponeTaken(manager, notice, failure, new Date(at));
    else if (await buryTaken(manager, notice, failure, new Date(now))) {
      // A user can register many clients: they must not hide another warning.
      const log = notice.selfRegistered ? this.#log : this.#security;
      log.warn(
        { clientId, noticeId: id, result: answer.result },
        'An application did not take a logout notice, which is a dead letter now',
      );
    }
  }
}

function tally(
  notices: readonly TakenNotice[],
  nameOf: (notice: TakenNotice) => string,
): Map<string, number> {
  const counts = new Map<string, number>();
  for (const notice of notices) {
    const name = nameOf(notice);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return counts;
}
