import { Inject, Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { GitHubFailure } from '../app/github-failure.js';
import { GitHubApp } from '../app/github-app.service.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import { afterCommit } from '#platform/database/statements/after-commit.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { nextTry } from './retry-times.js';
import {
  postpone,
  reseal,
  SEALED_TOKEN,
  sealedAfter,
  settle,
  takeQueued,
  type QueuedToken,
} from './token-queue.repository.js';

/**
 * Milliseconds between two reads of the queue of tokens. If a transaction of this process queues
 * tokens, the worker reads the queue as soon as the transaction has committed.
 */
const POLL = 2_000;
/**
 * Milliseconds for which only one replica works on a token. This is longer than a request to GitHub
 * may last, so that two replicas do not revoke the same token.
 */
const LEASE = 30_000;
/**
 * Milliseconds between two searches for tokens that are encrypted under the previous root secret.
 * The search is repeated, because a replica with the old configuration may still encrypt tokens
 * until it stops.
 */
const RESEAL_INTERVAL = 300_000;
/** The number of tokens that a replica takes from the queue and revokes at the same time. */
const AT_ONCE = 8;

const LOWEST_ID = '00000000-0000-0000-0000-000000000000';

/**
 * Revokes the queued tokens at GitHub. The queue is a table, so that nothing is lost if the process
 * is killed or GitHub cannot be reached. A token stays in the queue until GitHub has revoked it,
 * until it has expired, or until no root secret of the service decrypts it.
 */
@Injectable()
export class TokenRevoker implements OnApplicationBootstrap, BackgroundProvider {
  readonly #log = new Logger('github');
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #wake = Promise.withResolvers<void>();

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'secrets'>,
    private readonly dataSource: DataSource,
    private readonly app: GitHubApp,
    private readonly clock: Clock,
    private readonly random: Random,
  ) {}

  onApplicationBootstrap(): void {
    if (this.app.configured) this.#running = this.#work();
  }

  /** Waits for the requests to GitHub that are running. */
  async stopWork(): Promise<void> {
    this.#stopping.abort();
    this.wake();
    await this.#running;
  }

  /** Makes the worker read the queue at once. */
  wake(): void {
    this.#wake.resolve();
  }

  /** Makes the worker read the queue as soon as a transaction has committed. */
  wakeAfter(tx: EntityManager): void {
    afterCommit(tx, () => this.wake());
  }

  /** Tries to revoke all queued tokens that are due. Returns the number of tries. */
  async drain(): Promise<number> {
    let tried = 0;
    while (!this.#stopping.signal.aborted) {
      const now = this.clock.now();
      const leaseEnds = new Date(now.getTime() + LEASE);
      const lease = { now, leaseEnds, most: AT_ONCE };
      const tokens = await takeQueued(this.dataSource.manager, lease);
      await Promise.all(tokens.map((token) => this.#revoke(token)));
      tried += tokens.length;
      if (tokens.length < AT_ONCE) break;
    }
    return tried;
  }

  /**
   * Encrypts under the present root secret each token that is still encrypted under the previous
   * one, so that the operator can remove the previous secret.
   */
  async resealAll(): Promise<void> {
    const { manager } = this.dataSource;
    for (let after = LOWEST_ID; ;) {
      const tokens = await sealedAfter(manager, after, 200);
      for (const { id, sealed } of tokens) {
        const opened = await openSecret(this.config.secrets, SEALED_TOKEN, sealed);
        if (opened?.isOutdated !== true) continue;
        const again = await sealSecret(this.config.secrets, SEALED_TOKEN, opened.text);
        await reseal(manager, id, sealed, again);
      }
      const last = tokens.at(-1);
      if (last === undefined || this.#stopping.signal.aborted) return;
      after = last.id;
    }
  }

  async #work(): Promise<void> {
    let resealAt = this.clock.monotonic();
    while (!this.#stopping.signal.aborted) {
      if (this.config.secrets.previousRoot !== undefined && this.clock.monotonic() >= resealAt) {
        await this.#logged(() => this.resealAll());
        resealAt = this.clock.monotonic() + RESEAL_INTERVAL;
      }
      this.#wake = Promise.withResolvers<void>();
      await this.#logged(() => this.drain());
      const pause = this.clock.sleep(POLL, { signal: this.#stopping.signal }).catch(() => {});
      await Promise.race([this.#wake.promise, pause]);
    }
  }

  /**
   * Runs a step and logs its errors, so that the worker continues even if the database cannot be
   * reached.
   */
  async #logged(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#log.warn(`The queue of revocations waits: ${reasonOf(error)}`);
    }
  }

  async #revoke(token: QueuedToken): Promise<void> {
    const { manager } = this.dataSource;
    const opened = await openSecret(this.config.secrets, SEALED_TOKEN, token.sealed);
    try {
      if (opened === undefined) {
        this.#log.error({ tokenId: token.id }, 'no root secret opens a token that must be revoked');
        await settle(manager, token, 'unreadable');
        return;
      }
      await settle(manager, token, await this.app.revoke(opened.text));
    } catch (error) {
      await this.#tryLater(token, error);
    }
  }

  async #tryLater(token: QueuedToken, error: unknown): Promise<void> {
    const { manager } = this.dataSource;
    const now = this.clock.milliseconds();
    const facts = { tokenId: token.id, attempts: token.attempts };
    if (token.expiresAt.getTime() <= now) {
      this.#log.warn(facts, 'a token expired before GitHub revoked it');
      await settle(manager, token, 'expired');
      return;
    }
    this.#log.warn({ ...facts, err: error }, 'GitHub has not revoked a token yet');
    const told = error instanceof GitHubFailure ? error.retryAfter : undefined;
    const chance = this.random.bytes(1).readUInt8() / 255;
    await postpone(manager, token, nextTry(token.attempts, chance, now, told));
  }
}
