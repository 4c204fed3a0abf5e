import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { Clock } from '#platform/clock/clock.js';
import { newUuid, Random } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { REGISTERED_LIMITS, type LaneLimits } from '../notice-sending/fair-turns.js';
import {
  NoticeSender,
  type Failure,
  type Lane,
  type NoticeRequest,
} from '../notice-sending/notice-sender.js';
import { TokenSigningKeys } from '../token-signing/token-signing-keys.service.js';
import { LOGOUT_TOKEN_TYPE, logoutClaims } from './logout-token.js';
import {
  buryTaken,
  deliverTaken,
  KIND,
  listDueClients,
  postponeTaken,
  removeTaken,
  takeNotices,
  type TakenNotice,
} from './notice-queue.repository.js';
import { receiverOf, type Receiver } from './receiver.js';

/**
 * The limits for requests to clients that registered themselves. A replica sends at most 4 requests
 * to such clients at the same time, in addition to 16 to other clients. At least one of the 4 is
 * kept for clients that are known to accept notices.
 */
const SELF_LIMITS: LaneLimits = {
  most: 4,
  ofTenant: 2,
  ofClient: 1,
  unproven: 3,
  unprovenOfTenant: 2,
  failing: 2,
  failingOfTenant: 1,
};

/** Sends logout tokens to clients, from a queue in the database. */
@Injectable()
export class LogoutSender implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('notices');
  readonly #security = new Logger('security');
  readonly #sender: NoticeSender<TakenNotice>;

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'http'>,
    dataSource: DataSource,
    private readonly tokenSigningKeys: TokenSigningKeys,
    outboundHttp: OutboundHttp,
    private readonly clock: Clock,
    random: Random,
  ) {
    const parts = { dataSource, outboundHttp, clock, random };
    this.#sender = new NoticeSender(parts, {
      channel: 'logout_notices',
      name: 'The queue of logout notices',
      log: this.#log,
      lanes: [laneOf(false, REGISTERED_LIMITS), laneOf(true, SELF_LIMITS)],
      taking: new Set([200, 204]),
      tenantOf: ({ tenantId }) => tenantId,
      request: (notice) => this.#request(notice),
      deliver: deliverTaken,
      remove: removeTaken,
      postpone: postponeTaken,
      bury: (tx, notice, failure) => this.#bury(tx, notice, failure),
    });
  }

  onApplicationBootstrap(): void {
    this.#sender.start();
  }

  /** Stops the sender, and waits for the requests that are already sent. */
  async stopWork(): Promise<void> {
    await this.#sender.stop();
  }

  /** Makes the sender read the whole queue at once, and not only at the next poll. */
  wake(): void {
    this.#sender.wake();
  }

  async #request(notice: TakenNotice): Promise<NoticeRequest | undefined> {
    const receiver = notice.isOvertaken ? undefined : receiverOf(notice.metadata ?? {});
    if (!receiver) return undefined;
    const token = await this.#mint(notice, receiver);
    return {
      uri: receiver.uri,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ logout_token: token }).toString(),
    };
  }

  /**
   * Signs the logout token for one attempt to send it. Each attempt has its own token id and times.
   */
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

  async #bury(tx: EntityManager, notice: TakenNotice, failure: Failure): Promise<void> {
    if (!(await buryTaken(tx, notice, failure))) return;
    const { clientId, id, selfRegistered } = notice;
    // A warning about a client that registered itself goes to another log. One user can register
    // many clients, and their warnings must not hide others.
    const log = selfRegistered ? this.#log : this.#security;
    log.warn(
      { clientId, noticeId: id, kind: KIND, result: failure.result },
      'An application did not take a logout notice, which is a dead letter now',
    );
  }
}

function laneOf(selfRegistered: boolean, limits: LaneLimits): Lane<TakenNotice> {
  return {
    limits,
    due: (tx) => listDueClients(tx, selfRegistered),
    take: (tx, counts) => takeNotices(tx, counts, selfRegistered),
  };
}
