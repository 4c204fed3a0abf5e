import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members, adminRequired } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { Membership } from '#domain/organizations/membership.js';
import {
  OrganizationsRepository,
  type OrganizationSettings,
} from '#domain/organizations/organizations.repository.js';
import {
  mintScimToken,
  ScimTokensRepository,
  type ScimToken,
} from '#domain/scim-tokens/scim-tokens.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** The most valid SCIM tokens of an organization. */
const MOST_TOKENS = 100;

/** A new SCIM token. Only this result contains its secret. */
export interface NewToken {
  readonly scimToken: ScimToken;
  readonly secret: string;
  /** How users become members of the organization from now on. */
  readonly membership: Membership;
}

/** The settings and the SCIM tokens of an organization, as its admins read and change them. */
@Injectable()
export class OrganizationAdmin {
  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly scimTokens: ScimTokensRepository,
    private readonly audit: AuditLog,
  ) {}

  /** Returns the settings. @throws DomainError admin_required */
  async show({ orgId }: Admin): Promise<OrganizationSettings> {
    const settings = await this.organizations.settings(this.dataSource.manager, orgId);
    if (!settings) throw adminRequired();
    return settings;
  }

  /**
   * Changes settings. The audit event has the old and the new value of each; without a change there is no event.
   *
   * @throws DomainError admin_required
   */
  async change(
    admin: Admin,
    change: Partial<OrganizationSettings>,
    origin: AuditOrigin,
  ): Promise<OrganizationSettings> {
    const { orgId } = admin;
    return this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const before = await this.organizations.lockSettings(tx, orgId);
      const after = { ...before, ...change };
      const details = differences(before, after);
      if (Object.keys(details).length === 0) return before;
      await this.organizations.changeSettings(tx, orgId, after);
      await this.#record(tx, 'org_updated', admin, origin, details);
      return after;
    });
  }

  /** Lists the valid SCIM tokens, the newest first. */
  listTokens({ orgId }: Admin): Promise<ScimToken[]> {
    return this.scimTokens.list(this.dataSource.manager, orgId);
  }

  /**
   * Creates a SCIM token. The first token of an organization sets its membership to `scim_only`: until an admin changes the
   * setting, no sign-in creates a member.
   *
   * @throws DomainError admin_required, limit_reached
   */
  async createToken(
    admin: Admin,
    { description, expiresInDays }: { description: string; expiresInDays: number },
    origin: AuditOrigin,
  ): Promise<NewToken> {
    const { token: secret, hash } = mintScimToken();
    const { id: createdBy, orgId } = admin;
    return this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      // Locks the row of the organization: concurrent creations wait, and the limit holds.
      const { before, membership } = await this.organizations.beginProvisioning(tx, orgId);
      if ((await this.scimTokens.list(tx, orgId)).length >= MOST_TOKENS) {
        throw new DomainError(
          'limit_reached',
          `An organization can have ${MOST_TOKENS} SCIM tokens. Revoke one that is not needed first.`,
        );
      }
      const token = { orgId, hash, description, createdBy, expiresInDays };
      const scimToken = await this.scimTokens.insert(tx, token);
      await this.#record(tx, 'scim_token_created', admin, origin, {
        scim_token_id: scimToken.id,
        description,
        expires_at: scimToken.expiresAt.toISOString(),
      });
      if (before !== membership) {
        const details = { membership: { from: before, to: membership } };
        await this.#record(tx, 'org_updated', admin, origin, details);
      }
      return { scimToken, secret, membership };
    });
  }

  /**
   * Revokes a SCIM token at once. Of several requests for one token, one succeeds.
   *
   * @throws DomainError admin_required; not_found for a token that is not, or no longer, a token of the organization
   */
  async revokeToken(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      if (!isUuid(id) || !(await this.scimTokens.revoke(tx, admin.orgId, id))) {
        throw new DomainError('not_found', 'Your organization has no such SCIM token.');
      }
      const details = { scim_token_id: id.toLowerCase() };
      await this.#record(tx, 'scim_token_revoked', admin, origin, details);
    });
  }

  #record(
    tx: EntityManager,
    type: 'org_updated' | 'scim_token_created' | 'scim_token_revoked',
    { id: actorId, orgId }: Admin,
    origin: AuditOrigin,
    details: Readonly<Record<string, unknown>>,
  ): Promise<void> {
    return this.audit.record(tx, { type, actorId, subjectId: null, orgId, origin, details });
  }
}

function differences(
  before: OrganizationSettings,
  after: OrganizationSettings,
): Record<string, { readonly from: string; readonly to: string }> {
  const names = ['name', 'membership'] as const;
  return Object.fromEntries(
    names
      .filter((name) => before[name] !== after[name])
      .map((name) => [name, { from: before[name], to: after[name] }]),
  );
}
