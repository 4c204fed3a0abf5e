import { Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { NotedSecret } from '#domain/audit/noted-act.js';
import type {
  ClientApplication,
  ApplicationManager,
} from '#domain/oauth/applications/applications.repository.js';
import {
  ClientsRepository,
  type ClientAccess,
  type ClientSecret,
} from '#domain/oauth/clients/clients.repository.js';
import { newUuid } from '#platform/clock/random.js';
import { mintOpaqueToken } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { VISIBLE_LINE, isVisibleLine } from '#platform/text/single-line.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { nameAndTypeOf } from './application-json.js';
import type { ApplicationUpdate, NewApplication } from './applications.schemas.js';
import { ManagedApplications } from '#domain/oauth/applications/managed-applications.service.js';
import { approvedAfter } from '#domain/oauth/applications/approval.js';
import { changedCluster } from './registration/cluster-registration.js';
import { checkCalledAddresses, checkedMetadata } from './registration/registration-check.js';
import { registrationOf } from '#domain/oauth/applications/registration-metadata.js';
import { completed, usesSecret } from '#domain/oauth/applications/registration.js';

/** The largest number of applications that a user may have. */
const MOST_APPLICATIONS = 50;

/** The largest number of valid secrets that an application may have. */
const MOST_SECRETS = 3;

/**
 * An application that was just registered, and its secret, which is shown only once. The secret is
 * undefined if the application authenticates without one.
 */
export interface RegisteredApplication {
  readonly application: ClientApplication;
  readonly secret: string | undefined;
}

/** A new secret, which is shown only once. */
export interface NewSecret {
  readonly id: string;
  readonly secret: string;
}

/** Registers and changes the applications of users, and rotates their secrets. */
@Injectable()
export class Applications {
  constructor(
    private readonly managedApplications: ManagedApplications,
    private readonly clientsRepository: ClientsRepository,
    private readonly oidcProvider: OidcProvider,
    private readonly outboundHttp: OutboundHttp,
  ) {}

  /**
   * Registers an application.
   * @throws DomainError invalid_request for a wrong setting; limit_reached if the user has too many
   *   applications; account_inactive if the user is deactivated; unauthenticated if the session
   *   ended meanwhile
   */
  async register(
    manager: ApplicationManager,
    wanted: NewApplication,
    origin: AuditOrigin,
  ): Promise<RegisteredApplication> {
    await checkCalledAddresses(wanted, this.outboundHttp);
    const registration = completed(wanted);
    const { name, type: kindOf, auth_method: method } = registration;
    return this.managedApplications.register(async (tx) => {
      const orgId = await this.#lockOwner(tx, manager);
      await this.managedApplications.holdSession(tx, manager);
      const client = { id: newUuid(), ownerId: manager.userId, orgId };
      const metadata = await checkedMetadata(registration, client, this.oidcProvider);
      await this.clientsRepository.insert(tx, { ...client, kind: 'application', metadata });
      const application = await this.managedApplications.find({ ...manager, orgId }, client.id, tx);
      const added = usesSecret(method) ? await this.#addSecret(tx, client.id) : undefined;
      const details = { name, type: kindOf };
      const act = {
        type: 'oauth_client_registered',
        manager,
        application,
        origin,
        details,
        acts: added ? [noted('secret_made', application, added.id)] : [],
      } as const;
      await this.managedApplications.record(tx, act);
      return { application, secret: added?.secret };
    });
  }

  /**
   * Changes the registration of an application. The change applies to every later request. If the
   * application now authenticates by another method, its secrets are revoked.
   *
   * @throws DomainError not_found for an application that the user does not manage; invalid_request
   *   for a wrong setting
   */
  async update(
    manager: ApplicationManager,
    id: string,
    update: ApplicationUpdate,
    origin: AuditOrigin,
    check?: (current: ClientApplication) => void,
  ): Promise<ClientApplication> {
    await checkCalledAddresses(update, this.outboundHttp);
    return this.managedApplications.change(manager, id, async (tx, application, current) => {
      check?.(application);
      assertNewName(update.name, nameAndTypeOf(application).name);
      const metadata = await this.#changed(application, update);
      await this.clientsRepository.update(tx, id, metadata);
      const keepsSecrets = usesSecret(registrationOf(metadata).auth_method);
      const removed = keepsSecrets ? [] : await this.clientsRepository.removeSecrets(tx, id);
      const approval = await this.#limitApproval(tx, application, metadata, current.isOrgAdmin);
      const details = { changed: Object.keys(update), ...approval };
      const type = 'oauth_client_updated';
      const acts = removed.map((secretId) => noted('secret_ended', application, secretId));
      const act = { type, manager, application, origin, details, acts } as const;
      await this.managedApplications.record(tx, act);
      return this.managedApplications.find(manager, id, tx);
    });
  }

  /**
   * Removes an application with all its grants and tokens.
   *
   * @returns the numbers of tokens, users and secrets that the application had
   * @throws DomainError not_found for an application that the user does not manage
   */
  async remove(
    manager: ApplicationManager,
    id: string,
    origin: AuditOrigin,
  ): Promise<ClientAccess & { readonly secrets: number }> {
    return this.managedApplications.change(manager, id, async (tx, application) => {
      const access = await this.clientsRepository.countAccess(tx, id);
      const { length: secrets } = await this.clientsRepository.listSecrets(tx, id);
      await this.clientsRepository.remove(tx, id);
      const details = nameAndTypeOf(application);
      const { orgId } = application;
      const about = { clientId: id, orgId, name: details.name };
      const removal = { kind: 'application_removed', ...about } as const;
      const type = 'oauth_client_deleted';
      const act = { type, manager, application, origin, details, acts: [removal] } as const;
      await this.managedApplications.record(tx, act);
      return { ...access, secrets };
    });
  }

  /**
   * Ends all grants, codes and tokens of an application.
   *
   * @returns the number of tokens that were valid until then
   * @throws DomainError not_found for an application that the user does not manage
   */
  async revokeTokens(
    manager: ApplicationManager,
    id: string,
    origin: AuditOrigin,
  ): Promise<number> {
    return this.managedApplications.change(manager, id, async (tx, application) => {
      const revoked = await this.clientsRepository.endTokens(tx, id);
      const details = { revoked };
      const act = { type: 'oauth_token_revoked', manager, application, origin, details } as const;
      await this.managedApplications.record(tx, act);
      return revoked;
    });
  }

  /**
   * Lists the valid secrets of an application, the newest first.
   * @throws DomainError not_found for an application that the user does not manage
   */
  async listSecrets(manager: ApplicationManager, id: string): Promise<ClientSecret[]> {
    const application = await this.managedApplications.find(manager, id);
    return this.managedApplications.read((tx) =>
      this.clientsRepository.listSecrets(tx, application.id),
    );
  }

  /**
   * Adds a secret to an application. The earlier secrets stay valid for some time, the overlap, so
   * that the application can change over without a pause.
   *
   * @param rotation the overlap in seconds, and the days until the new secret expires
   * @returns the new secret, and the list of all valid secrets, which begins with the new secret
   * @throws DomainError not_found for an application that the user does not manage; limit_reached
   *   if it has too many valid secrets; invalid_request if it uses no secret
   */
  async rotateSecret(
    manager: ApplicationManager,
    id: string,
    { overlap, expiresInDays }: { readonly overlap: number; readonly expiresInDays: number | null },
    origin: AuditOrigin,
  ): Promise<{ readonly added: NewSecret; readonly live: readonly ClientSecret[] }> {
    return this.managedApplications.change(manager, id, async (tx, application) => {
      assertUsesSecret(application);
      const retired = await this.clientsRepository.retireSecrets(tx, id, overlap);
      if ((await this.clientsRepository.listSecrets(tx, id)).length >= MOST_SECRETS) {
        throw new DomainError(
          'limit_reached',
          `An application can have ${MOST_SECRETS} secrets at a time. Delete one that is not needed first.`,
        );
      }
      const added = await this.#addSecret(tx, id, expiresInDays);
      const details = {
        secret_id: added.id,
        expires_previous_in_seconds: overlap,
        ...(expiresInDays === null ? {} : { expires_in_days: expiresInDays }),
      };
      const acts = [
        noted('secret_made', application, added.id),
        ...retired.map(({ id: old, endsAt }) => noted('secret_ended', application, old, endsAt)),
      ];
      const act = {
        type: 'oauth_secret_added',
        manager,
        application,
        origin,
        details,
        acts,
      } as const;
      await this.managedApplications.record(tx, act);
      return { added, live: await this.clientsRepository.listSecrets(tx, id) };
    });
  }

  /**
   * Revokes a secret of an application.
   * @throws DomainError not_found if the user does not manage the application, or it has no such
   *   secret
   */
  async revokeSecret(
    manager: ApplicationManager,
    id: string,
    secretId: string,
    origin: AuditOrigin,
  ): Promise<void> {
    await this.managedApplications.change(manager, id, async (tx, application) => {
      if (!isUuid(secretId) || !(await this.clientsRepository.removeSecret(tx, id, secretId))) {
        throw new DomainError('not_found', 'The application has no such secret.');
      }
      const details = { secret_id: secretId };
      const acts = [noted('secret_ended', application, secretId.toLowerCase())];
      const type = 'oauth_secret_revoked';
      const act = { type, manager, application, origin, details, acts } as const;
      await this.managedApplications.record(tx, act);
    });
  }

  /**
   * Limits an admin's approval of an application after a change. An approval covers redirect URIs,
   * so that a URI that is removed must be approved again if it is added later. If the owner changes
   * how the application authenticates, the whole approval ends.
   *
   * @returns the details for the audit log; empty if there is no approval, or if it still covers
   *   all URIs
   */
  async #limitApproval(
    tx: EntityManager,
    { id, metadata: before, approvedUris }: ClientApplication,
    after: Record<string, unknown>,
    isByAdmin: boolean,
  ): Promise<{ readonly approval?: 'ended' | 'limited' }> {
    if (approvedUris === null) return {};
    const [registered, changed] = [registrationOf(before), registrationOf(after)];
    const change = { before: registered, after: changed, approved: approvedUris, isByAdmin };
    const uris = approvedAfter(change);
    await this.managedApplications.limitApproval(tx, id, uris);
    if (uris === null) return { approval: 'ended' };
    return uris.length < changed.redirect_uris.length ? { approval: 'limited' } : {};
  }

  /**
   * Returns the metadata of an application after a change.
   * @throws DomainError invalid_request for a wrong setting
   */
  async #changed(
    application: ClientApplication,
    update: ApplicationUpdate,
  ): Promise<Record<string, unknown>> {
    if (application.resource !== null) return changedCluster(application, update);
    const { name, ...settings } = update;
    const before = registrationOf(application.metadata);
    const registration = completed({ ...before, ...settings, name: name ?? before.name });
    return checkedMetadata(registration, application, this.oidcProvider);
  }

  async #addSecret(
    tx: EntityManager,
    clientId: string,
    days: number | null = null,
  ): Promise<NewSecret> {
    const { token, hash } = mintOpaqueToken();
    return { id: await this.clientsRepository.addSecret(tx, clientId, hash, days), secret: token };
  }

  /**
   * Locks the row of the user who registers an application. Without the lock, two registrations at
   * the same time could exceed the limit on applications.
   * @returns the id of the user's organization; null if the user has none
   */
  async #lockOwner(tx: EntityManager, { userId }: ApplicationManager): Promise<string | null> {
    const owner = await this.clientsRepository.lockOwner(tx, userId);
    if (!owner) {
      throw new DomainError(
        'account_inactive',
        'This account is deactivated, or its address is in a domain that its organization does not own.',
      );
    }
    if (owner.applications >= MOST_APPLICATIONS) {
      throw new DomainError(
        'limit_reached',
        `A user can have ${MOST_APPLICATIONS} applications. Delete one that is not needed first.`,
      );
    }
    return owner.orgId;
  }
}

/**
 * Describes a change of an application's secret. The process keeps the description for an hour. If
 * a failover of the database loses the change, the process ends an ended secret again, and lists a
 * lost new secret for the admins.
 */
function noted(
  kind: NotedSecret['kind'],
  application: ClientApplication,
  secretId: string,
  endsAt?: Date,
): NotedSecret {
  const { id: clientId, orgId } = application;
  const { name } = nameAndTypeOf(application);
  return {
    kind,
    secret: 'client_secret',
    secretId,
    orgId,
    clientId,
    name,
    ...(endsAt && { endsAt }),
  };
}

/**
 * Checks that an application authenticates with a secret.
 * @throws DomainError invalid_request for any other application
 */
function assertUsesSecret(application: ClientApplication): void {
  const { auth_method: method } = registrationOf(application.metadata);
  if (usesSecret(method)) return;
  throw new DomainError(
    'invalid_request',
    `This application authenticates by ${method} and has no use for a secret.`,
  );
}

/**
 * Refuses invisible characters in a new name. An application may keep a name that an earlier
 * version of the service accepted.
 * @throws DomainError invalid_request if the name is new and has such a character
 */
function assertNewName(name: string | undefined, known: string): void {
  if (name === undefined || name === known || isVisibleLine(name)) return;
  throw new DomainError('invalid_request', `name: ${VISIBLE_LINE}`);
}
