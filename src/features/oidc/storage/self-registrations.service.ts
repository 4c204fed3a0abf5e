import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { ClientsRepository } from '#domain/grants/clients.repository.js';
import { SelfRegistrationsRepository } from '#domain/grants/self-registrations.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** How many clients that no user has consented to one network may have, and all networks together. */
const MOST_OF_NETWORK = 20;
const MOST_IN_ALL = 100_000;

/** How many registrations of a process wait for their turn; beyond, they would only outlast their requests. */
const MOST_WAITING = 500;

/**
 * The registration of clients by themselves (RFC 7591), within limits that hold for clients that no user has consented to. They
 * are counted under one advisory lock. At the limit of all, the oldest such client is removed, so that no network can keep
 * another from registering.
 */
@Injectable()
export class SelfRegistrations {
  readonly #isCertification: boolean;
  /** One registration of a process waits for the lock at a time, so that waiting takes one connection and no more. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly dataSource: DataSource,
    private readonly clients: ClientsRepository,
    private readonly limits: SelfRegistrationsRepository,
    private readonly audit: AuditLog,
  ) {
    this.#isCertification = config.certification.token !== undefined;
  }

  /**
   * Registers a client in a transaction of its own. A network that has as many as it may is refused before it waits for others:
   * its flood makes none of them wait.
   *
   * @param complete what else the transaction writes
   * @throws DomainError limit_reached for a network that has as many as it may; unavailable where too many wait
   */
  async register(
    id: string,
    metadata: Readonly<Record<string, unknown>>,
    origin: AuditOrigin,
    complete: (tx: EntityManager) => Promise<void>,
  ): Promise<void> {
    await this.#assertMayRegister(this.dataSource.manager, origin.ip);
    if (this.#waiting >= MOST_WAITING) {
      const detail = 'Too many clients are being registered. Try again in a moment.';
      throw new DomainError('unavailable', detail, { retryAfter: 1 });
    }
    const run = () =>
      this.dataSource.transaction(async (tx) => {
        await this.limits.lock(tx);
        await this.#assertMayRegister(tx, origin.ip);
        await this.clients.insert(tx, {
          id,
          kind: 'dynamic',
          metadata,
          ownerId: null,
          orgId: null,
        });
        if (origin.ip !== undefined) await this.limits.setOrigin(tx, id, origin.ip);
        await complete(tx);
        await this.#trim(tx, origin);
      });
    this.#waiting += 1;
    const registered = this.#last.then(run).finally(() => {
      this.#waiting -= 1;
    });
    this.#last = registered.catch(() => undefined);
    await registered;
  }

  /** In certification test mode a suite registers a client a module, from one address. */
  async #assertMayRegister(tx: EntityManager, address: string | undefined): Promise<void> {
    if (this.#isCertification || address === undefined) return;
    if ((await this.limits.count(tx, address)) < MOST_OF_NETWORK) return;
    throw new DomainError(
      'limit_reached',
      `This address has registered ${MOST_OF_NETWORK} clients that no user has consented to. Use or delete one of them first.`,
    );
  }

  async #trim(tx: EntityManager, origin: AuditOrigin): Promise<void> {
    for (const removed of await this.limits.trim(tx, MOST_IN_ALL)) {
      await this.audit.record(tx, {
        type: 'oauth_client_deleted',
        actorId: null,
        subjectId: null,
        orgId: null,
        origin,
        details: { client_id: removed, reason: 'limit' },
      });
    }
  }
}
