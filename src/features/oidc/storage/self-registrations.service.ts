import { Inject, Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { artifactId } from '#domain/oauth/grants/artifact.js';
import { destroyArtifact } from '#domain/oauth/grants/artifacts.repository.js';
import { ClientsRepository } from '#domain/oauth/clients/clients.repository.js';
import {
  countClientsOfNetwork,
  lockRegistrations,
  setClientOrigin,
  trimDynamicClients,
} from '#domain/oauth/clients/dynamic-clients.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { hashOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { errors } from '../protocol/library.js';

/** The largest number of clients to which no user has consented that one network may have. */
const MOST_OF_NETWORK = 20;

/** A client that registers or updates itself. */
export interface SelfRegistration {
  readonly id: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** A new secret of the client; undefined if it keeps its secrets. */
  readonly secret: string | undefined;
  readonly origin: AuditOrigin;
}

/**
 * Stores clients that register themselves (RFC 7591), and limits how many of them may exist without
 * the consent of any user. The count is exact, because it is made under an advisory lock. At the
 * limit for all networks, the oldest client without consent is removed, so that no network can
 * prevent the registrations of other networks.
 */
@Injectable()
export class SelfRegistrations {
  /**
   * The largest number of clients to which no user has consented, in all networks together. A test
   * sets a lower limit, so that it need not insert so many clients.
   */
  mostInAll = 100_000;
  /**
   * The largest number of registrations that may wait in one process. If more could wait, the last
   * ones would exceed the deadline of their requests.
   */
  mostWaiting = 500;
  readonly #isCertification: boolean;
  /**
   * Settles when the previous registration in this process has ended. Only one registration at a
   * time waits for the lock in the database, so that all waiting takes only one connection.
   */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly dataSource: DataSource,
    private readonly clientsRepository: ClientsRepository,
    private readonly auditLog: AuditLog,
  ) {
    this.#isCertification = config.certification.token !== undefined;
  }

  /**
   * The number of registrations that wait in this process, including the one that is being stored.
   */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Registers a client. A network (an IPv4 address or an IPv6 /64) at its limit is refused before
   * the queue, so that it delays no other network.
   *
   * @throws DomainError limit_reached for a network at its limit; unavailable while too many
   *   registrations wait
   */
  async register(registration: SelfRegistration): Promise<void> {
    await this.#assertMayRegister(this.dataSource.manager, registration.origin.ip);
    if (this.#waiting >= this.mostWaiting) {
      const detail = 'Too many clients are being registered. Try again in a moment.';
      throw new DomainError('unavailable', detail, { retryAfter: 1 });
    }
    this.#waiting += 1;
    const registered = this.#last
      .then(() => withTransactionRetry(this.dataSource, (tx) => this.#insert(tx, registration)))
      .finally(() => {
        this.#waiting -= 1;
      });
    this.#last = registered.catch(() => undefined);
    await registered;
  }

  /**
   * Updates a client that manages itself (RFC 7592 §2.2). The registration access token of the
   * request ends in the same transaction, so that of several updates with one token only one takes
   * effect. The OAuth library then gives the client a new token.
   *
   * @throws InvalidToken if another update has used the token, or if the client was removed
   *   meanwhile
   */
  async update(registration: SelfRegistration, accessToken: string): Promise<void> {
    const { id, metadata, origin } = registration;
    const token = { model: 'RegistrationAccessToken', id: artifactId(accessToken) };
    await withTransactionRetry(this.dataSource, async (tx) => {
      if (!(await this.clientsRepository.update(tx, id, metadata))) {
        throw new errors.InvalidToken('the client was removed');
      }
      if (!(await destroyArtifact(tx, token))) {
        throw new errors.InvalidToken('another update has used the registration access token');
      }
      await this.#writeSecret(tx, registration);
      await this.#record(tx, 'oauth_client_updated', id, origin);
    });
  }

  /** Deletes a client that manages itself (RFC 7592 §2.3). */
  async remove(id: string, origin: AuditOrigin): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      const isRemoved = await this.clientsRepository.remove(tx, id);
      if (isRemoved) await this.#record(tx, 'oauth_client_deleted', id, origin);
    });
  }

  async #insert(tx: EntityManager, registration: SelfRegistration): Promise<void> {
    const { id, metadata, origin } = registration;
    await lockRegistrations(tx);
    await this.#assertMayRegister(tx, origin.ip);
    const client = { id, kind: 'dynamic', metadata, ownerId: null, orgId: null } as const;
    await this.clientsRepository.insert(tx, client);
    if (origin.ip !== undefined) {
      await setClientOrigin(tx, id, origin.ip);
    }
    await this.#writeSecret(tx, registration);
    await this.#record(tx, 'oauth_client_registered', id, origin);
    for (const removed of await trimDynamicClients(tx, this.mostInAll)) {
      await this.#record(tx, 'oauth_client_deleted', removed, origin, { reason: 'limit' });
    }
  }

  async #writeSecret(tx: EntityManager, { id, metadata, secret }: SelfRegistration): Promise<void> {
    if (!needsSecret(metadata)) await this.clientsRepository.removeSecrets(tx, id);
    else if (secret !== undefined) {
      await this.clientsRepository.addSecret(tx, id, hashOpaqueToken(secret));
    }
  }

  /**
   * Refuses a network that has reached its limit. In certification test mode there is no limit,
   * because the conformance suite registers many clients from one IP address.
   * @throws DomainError limit_reached for such a network
   */
  async #assertMayRegister(tx: EntityManager, address: string | undefined): Promise<void> {
    if (this.#isCertification || address === undefined) return;
    if ((await countClientsOfNetwork(tx, address)) < MOST_OF_NETWORK) return;
    throw new DomainError(
      'limit_reached',
      `This address has registered ${MOST_OF_NETWORK} clients that no user has consented to. Use or delete one of them first.`,
    );
  }

  async #record(
    tx: EntityManager,
    type: 'oauth_client_registered' | 'oauth_client_updated' | 'oauth_client_deleted',
    clientId: string,
    origin: AuditOrigin,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<void> {
    await this.auditLog.record(tx, {
      type,
      actorId: null,
      subjectId: null,
      orgId: null,
      origin,
      details: { client_id: clientId, ...more },
    });
  }
}

/**
 * Returns true if a client authenticates with a secret, according to its metadata. A client that
 * registers no method authenticates with a secret (RFC 7591 §2).
 */
function needsSecret(metadata: object): boolean {
  const { token_endpoint_auth_method: method = 'client_secret_basic' } = metadata as {
    token_endpoint_auth_method?: string;
  };
  return method.startsWith('client_secret');
}
