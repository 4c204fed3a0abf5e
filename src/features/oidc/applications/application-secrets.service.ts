import { Injectable } from '@nestjs/common';
import { DataSource, EntityManager } from 'typeorm';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { ApplicationManager } from '#domain/grants/applications.repository.js';
import {
  ClientSecretsRepository,
  type ClientSecret,
} from '#domain/grants/client-secrets.repository.js';
import { ClientsRepository } from '#domain/grants/clients.repository.js';
import { mintOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ManagedApplications } from './managed-applications.service.js';
import { registrationOf } from './registration-metadata.js';
import { usesSecret } from './registration.js';

/** How many secrets of an application may be good at a time. */
const MOST_SECRETS = 3;

/** A secret that was just made: told this once. */
export interface NewSecret {
  readonly id: string;
  readonly secret: string;
}

/** The secrets of applications: told once, kept as hashes, and rotated without a moment in which none is good. */
@Injectable()
export class ApplicationSecrets {
  constructor(
    private readonly dataSource: DataSource,
    private readonly managed: ManagedApplications,
    private readonly clients: ClientsRepository,
    private readonly secrets: ClientSecretsRepository,
  ) {}

  /** The secrets that are good, the newest first. @throws DomainError not_found */
  async list(manager: ApplicationManager, id: string): Promise<ClientSecret[]> {
    const application = await this.managed.find(manager, id);
    return this.secrets.list(this.dataSource.manager, application.id);
  }

  /** Makes a secret for a client. */
  async add(tx: EntityManager, clientId: string): Promise<NewSecret> {
    const { token, hash } = mintOpaqueToken();
    return { id: await this.clients.addSecret(tx, clientId, hash), secret: token };
  }

  /**
   * Gives an application a new secret; those before stay good for the overlap, and no longer.
   *
   * @param overlap seconds
   * @returns the secrets that are good now, the new one first, which is told this once
   * @throws DomainError not_found, limit_reached, and invalid_request where the application has no use for one
   */
  async rotate(
    manager: ApplicationManager,
    id: string,
    overlap: number,
    origin: AuditOrigin,
  ): Promise<{ readonly added: NewSecret; readonly live: readonly ClientSecret[] }> {
    return this.managed.change(manager, id, async (tx, application) => {
      const { auth_method: method } = registrationOf(application.metadata);
      if (!usesSecret(method)) {
        throw new DomainError(
          'invalid_request',
          `This application authenticates by ${method} and has no use for a secret.`,
        );
      }
      await this.secrets.retire(tx, id, overlap);
      if ((await this.secrets.list(tx, id)).length >= MOST_SECRETS) {
        throw new DomainError(
          'limit_reached',
          `An application can have ${MOST_SECRETS} secrets at a time. Delete one that is not needed first.`,
        );
      }
      const added = await this.add(tx, id);
      await this.managed.record(tx, {
        type: 'oauth_secret_added',
        manager,
        application,
        origin,
        details: { secret_id: added.id, expires_previous_in_seconds: overlap },
      });
      return { added, live: await this.secrets.list(tx, id) };
    });
  }

  /** Ends a secret at once. @throws DomainError not_found */
  async revoke(
    manager: ApplicationManager,
    id: string,
    secretId: string,
    origin: AuditOrigin,
  ): Promise<void> {
    await this.managed.change(manager, id, async (tx, application) => {
      if (!isUuid(secretId) || !(await this.secrets.revoke(tx, id, secretId))) {
        throw new DomainError('not_found', 'The application has no such secret.');
      }
      await this.managed.record(tx, {
        type: 'oauth_secret_revoked',
        manager,
        application,
        origin,
        details: { secret_id: secretId },
      });
    });
  }

  /** Ends every secret of a client, in the transaction in which it stops using any. */
  async removeAll(tx: EntityManager, clientId: string): Promise<void> {
    await this.secrets.removeAll(tx, clientId);
  }
}
