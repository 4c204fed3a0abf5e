import { Injectable } from '@nestjs/common';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import { previewEnd, type EndPreview } from './end-preview.repository.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members } from '#domain/directory/members.service.js';
import { UsersRepository, type Admin } from '#domain/directory/users.repository.js';
import {
  IdentityProviders,
  type ListedProvider,
} from '#domain/providers/identity-providers.service.js';
import { issuerTenant, servesTenant } from '#domain/providers/tenancy.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  countBoundUsers,
  listBoundUsers,
  unbindUsers,
  withoutOtherProvider,
} from '#domain/providers/accepted/bound-users.repository.js';
import {
  deleteProvider,
  insertProvider,
  listProviders,
  lockProvider,
  lockProviders,
  planForManyUsers,
  type AcceptedProvider,
} from '#domain/providers/accepted/organization-providers.repository.js';
import { assertMayWithdraw } from '#domain/providers/accepted/withdrawal-rule.js';

/** The most identity providers that an organization can accept. */
const MOST_PROVIDERS = 50;

/**
 * An identity provider that an organization accepts. `configured` has its configuration; it is
 * undefined if the configuration of the service does not contain the provider any more.
 */
export interface OrganizationProvider extends AcceptedProvider {
  readonly configured: ListedProvider | undefined;
  /** The number of members who are bound to an identity of the provider. */
  readonly users: number;
}

/** An act of an admin who allows or withdraws a provider, with the origin of the request. */
export interface ProviderAct {
  readonly admin: Admin;
  readonly origin: AuditOrigin;
}

/**
 * The result of the withdrawal of a provider: the number of users whose access ended, and the
 * counts of what ended.
 */
export interface Withdrawal {
  readonly users: number;
  readonly counts: RevokedCounts;
}

/** A provider, and the counts of the access that its withdrawal would end. */
export interface ProviderPreview {
  readonly provider: Omit<OrganizationProvider, 'users'>;
  /** The reason why the admin cannot withdraw the provider; null if there is none. */
  readonly obstacle: string | null;
  readonly ends: EndPreview;
}

/** The identity providers that organizations accept, as their admins allow and withdraw them. */
@Injectable()
export class OrganizationProviders {
  constructor(
    private readonly work: TenantWork,
    private readonly members: Members,
    private readonly users: UsersRepository,
    private readonly identityProviders: IdentityProviders,
    private readonly accessRevocation: AccessRevocation,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Lists the providers that an organization accepts, the oldest first, and all providers that the
   * service has in its configuration.
   */
  async list({ orgId }: Admin): Promise<{
    readonly providers: readonly OrganizationProvider[];
    readonly available: readonly ListedProvider[];
  }> {
    return this.work.costly(orgId, async (tx) => {
      const counts = await countBoundUsers(tx, orgId);
      const providers = (await listProviders(tx, orgId)).map((provider) => ({
        ...this.#withConfigured(provider),
        users:
          counts.find(
            ({ issuer, tenant }) => issuer === provider.issuer && tenant === provider.tenant,
          )?.users ?? 0,
      }));
      return { providers, available: this.identityProviders.list() };
    });
  }

  /**
   * Returns a provider, and the counts of the access that its withdrawal would end now. @throws
   * DomainError not_found
   */
  preview(admin: Admin, id: string): Promise<ProviderPreview> {
    const { orgId } = admin;
    return this.work.costly(orgId, async (tx) => {
      const found = await listProviders(tx, orgId);
      const provider = found.find((one) => one.id === id.toLowerCase());
      if (!provider) throw noProvider();
      const bound = await listBoundUsers(tx, orgId, provider);
      const alone = await withoutOtherProvider(tx, orgId, provider, bound);
      return {
        provider: this.#withConfigured(provider),
        obstacle: await this.#obstacle(tx, admin, provider, alone),
        ends: await previewEnd(
          tx,
          alone.map((user) => user.id),
        ),
      };
    });
  }

  /**
   * Allows members of the organization to sign in through a configured provider.
   *
   * @param tenant the tenant (customer) at the provider, if the provider serves many
   * @throws DomainError unknown_provider, invalid_request, already_allowed, limit_reached,
   *   admin_required
   */
  async allow(
    { admin, origin }: ProviderAct,
    slug: string,
    tenant: string | undefined,
  ): Promise<OrganizationProvider> {
    const { id: adminId, orgId } = admin;
    const configured = this.#configured(slug);
    const accepted = issuerTenant(configured, tenant);
    return this.work.transact(orgId, async (tx) => {
      await lockProviders(tx, orgId);
      await this.members.holdAdmin(tx, admin);
      if ((await listProviders(tx, orgId)).length >= MOST_PROVIDERS) throw tooManyProviders();
      const provider = await insertProvider(tx, orgId, accepted, adminId);
      if (!provider) {
        const detail = 'Your organization accepts sign-ins through this provider already.';
        throw new DomainError('already_allowed', detail);
      }
      await this.#record(tx, 'org_provider_allowed', { admin, origin }, provider, {});
      return { ...provider, configured, users: 0 };
    });
  }

  /**
   * Withdraws an identity provider, so that members cannot sign in through it any more. If a user
   * has identities of this provider alone, the sessions, grants and tokens of the user end, and the
   * certificates are revoked. Nothing more is issued to such a user until the next sign-in through
   * an accepted provider.
   *
   * @throws DomainError not_found, last_provider, own_provider, admin_required
   */
  async withdraw(act: ProviderAct, id: string): Promise<Withdrawal> {
    const { admin, origin } = act;
    const { orgId } = admin;
    if (!isUuid(id)) throw noProvider();
    return this.work.transact(orgId, async (tx) => {
      await planForManyUsers(tx);
      await lockProviders(tx, orgId);
      const provider = await lockProvider(tx, orgId, id);
      if (!provider) throw noProvider();
      const members = await listBoundUsers(tx, orgId, provider);
      await this.users.lockMembers(tx, orgId, [admin.id, ...members]);
      await this.members.holdAdmin(tx, admin);
      // The users are read again under the locks, because before the locks a user may have been
      // removed, or bound to another provider.
      const bound = await listBoundUsers(tx, orgId, provider);
      const alone = await withoutOtherProvider(tx, orgId, provider, bound);
      await this.#assertMayWithdraw(tx, admin, provider, alone);
      const counts = await this.accessRevocation.end(tx, alone, 'provider-withdrawn', {
        reason: 'identity provider withdrawn',
        revokedBy: admin.id,
      });
      const { issuer, tenant } = provider;
      const ended = alone.map((user) => user.id);
      const end = { orgId, issuer, tenant, userIds: bound, ended, admin: admin.id, origin };
      await unbindUsers(tx, end);
      await deleteProvider(tx, orgId, provider.id);
      const details = { users: ended.length, ...counts };
      await this.#record(tx, 'org_provider_withdrawn', act, provider, details);
      return { users: ended.length, counts };
    });
  }

  async #obstacle(
    tx: EntityManager,
    admin: Admin,
    provider: AcceptedProvider,
    alone: readonly { readonly id: string }[],
  ): Promise<string | null> {
    try {
      await this.#assertMayWithdraw(tx, admin, provider, alone);
      return null;
    } catch (error) {
      if (error instanceof DomainError) return error.detail;
      throw error;
    }
  }

  async #assertMayWithdraw(
    tx: EntityManager,
    admin: Admin,
    provider: AcceptedProvider,
    alone: readonly { readonly id: string }[],
  ): Promise<void> {
    const others = (await listProviders(tx, admin.orgId)).filter(({ id }) => id !== provider.id);
    assertMayWithdraw({
      isConfigured: this.#withConfigured(provider).configured !== undefined,
      others: others.map((other) => this.#withConfigured(other).configured !== undefined),
      isOwn: alone.some(({ id }) => id === admin.id),
    });
  }

  #configured(slug: string): ListedProvider {
    const configured = this.identityProviders.list().find((provider) => provider.slug === slug);
    if (configured) return configured;
    throw new DomainError('unknown_provider', 'There is no identity provider of that name.');
  }

  #withConfigured(provider: AcceptedProvider): Omit<OrganizationProvider, 'users'> {
    const configured = this.identityProviders.list().find((one) => servesTenant(one, provider));
    return { ...provider, configured };
  }

  #record(
    tx: EntityManager,
    type: 'org_provider_allowed' | 'org_provider_withdrawn',
    { admin, origin }: ProviderAct,
    provider: AcceptedProvider,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const { id, issuer, tenant } = provider;
    const slug = this.#withConfigured(provider).configured?.slug ?? null;
    return this.audit.record(tx, {
      type,
      actorId: admin.id,
      subjectId: null,
      orgId: admin.orgId,
      origin,
      details: { provider_id: id, provider: slug, issuer, tenant, ...details },
    });
  }
}

function noProvider(): DomainError {
  return new DomainError('not_found', 'Your organization has no such identity provider.');
}

function tooManyProviders(): DomainError {
  const detail = `An organization can accept ${MOST_PROVIDERS} providers. Withdraw one that is not needed first.`;
  return new DomainError('limit_reached', detail);
}
