import { Injectable } from '@nestjs/common';
import { DataSource, EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { Application, ApplicationManager } from '#domain/grants/applications.repository.js';
import { ClientsRepository } from '#domain/grants/clients.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { ApplicationRules } from './application-rules.service.js';
import { ApplicationSecrets } from './application-secrets.service.js';
import type { Change, Register } from './applications.schemas.js';
import { ManagedApplications } from './managed-applications.service.js';
import { registrationOf } from './registration-metadata.js';
import { completed, usesSecret } from './registration.js';

/** How many applications a person may have. */
const MOST_APPLICATIONS = 50;

/** An application that was just registered, and its secret, which is told this once. */
export interface Registered {
  readonly application: Application;
  readonly secret: string | undefined;
}

/** What people do with their applications: these act for whoever allows it, or for themselves, and never on our own APIs. */
@Injectable()
export class Applications {
  constructor(
    private readonly dataSource: DataSource,
    private readonly managed: ManagedApplications,
    private readonly clients: ClientsRepository,
    private readonly secrets: ApplicationSecrets,
    private readonly rules: ApplicationRules,
  ) {}

  /** @throws DomainError invalid_request, limit_reached, account_inactive */
  async register(
    manager: ApplicationManager,
    wanted: Register,
    origin: AuditOrigin,
  ): Promise<Registered> {
    await this.rules.assertKeysAddress(wanted.jwks_uri);
    const registration = completed(wanted);
    const { name, type: kindOf, auth_method: method } = registration;
    return this.dataSource.transaction(async (tx) => {
      const orgId = await this.#makeRoom(tx, manager);
      const client = { id: newUuid(), ownerId: manager.userId, orgId };
      const metadata = await this.rules.metadata(registration, client);
      await this.clients.insert(tx, { ...client, kind: 'application', metadata });
      const application = await this.managed.find({ ...manager, orgId }, client.id, tx);
      const secret = usesSecret(method)
        ? (await this.secrets.add(tx, client.id)).secret
        : undefined;
      await this.managed.record(tx, {
        type: 'oauth_client_registered',
        manager,
        application,
        origin,
        details: { name, type: kindOf },
      });
      return { application, secret };
    });
  }

  /**
   * Changes what is registered of an application, at once for everything it does from then on. Its secrets end where it
   * authenticates by something else.
   *
   * @throws DomainError not_found, invalid_request
   */
  async change(
    manager: ApplicationManager,
    id: string,
    change: Change,
    origin: AuditOrigin,
  ): Promise<Application> {
    await this.rules.assertKeysAddress(change.jwks_uri);
    return this.managed.change(manager, id, async (tx, application) => {
      const { name, ...settings } = change;
      const before = registrationOf(application.metadata);
      const registration = completed({ ...before, ...settings, name: name ?? before.name });
      await this.clients.update(tx, id, await this.rules.metadata(registration, application));
      if (!usesSecret(registration.auth_method)) await this.secrets.removeAll(tx, id);
      await this.managed.record(tx, {
        type: 'oauth_client_updated',
        manager,
        application,
        origin,
        details: { changed: Object.keys(change) },
      });
      return this.managed.find(manager, id, tx);
    });
  }

  /** Ends an application, and all it was ever given. @throws DomainError not_found */
  async remove(manager: ApplicationManager, id: string, origin: AuditOrigin): Promise<void> {
    await this.managed.change(manager, id, async (tx, application) => {
      await this.clients.remove(tx, id);
      const { name, type: kindOf } = registrationOf(application.metadata);
      await this.managed.record(tx, {
        type: 'oauth_client_deleted',
        manager,
        application,
        origin,
        details: { name, type: kindOf },
      });
    });
  }

  /**
   * Ends every grant, code and token of an application at once, whoever gave it.
   *
   * @returns how many tokens were good until then
   * @throws DomainError not_found
   */
  async revokeTokens(
    manager: ApplicationManager,
    id: string,
    origin: AuditOrigin,
  ): Promise<number> {
    return this.managed.change(manager, id, async (tx, application) => {
      const revoked = await this.clients.endTokens(tx, id);
      await this.managed.record(tx, {
        type: 'oauth_token_revoked',
        manager,
        application,
        origin,
        details: { revoked },
      });
      return revoked;
    });
  }

  /** @returns the organization of whoever registers */
  async #makeRoom(tx: EntityManager, { userId }: ApplicationManager): Promise<string | null> {
    const owner = await this.clients.lockOwner(tx, userId);
    if (!owner)
      throw new DomainError(
        'account_inactive',
        'This account is deactivated, or its address is in a domain that its organization does not own.',
      );
    if (owner.applications >= MOST_APPLICATIONS) {
      throw new DomainError(
        'limit_reached',
        `A person can have ${MOST_APPLICATIONS} applications. Delete one that is not needed first.`,
      );
    }
    return owner.orgId;
  }
}
