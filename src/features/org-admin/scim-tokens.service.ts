import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import type { Membership } from '#domain/organizations/membership.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { mintScimToken } from '#domain/scim-tokens/scim-token.js';
import {
  ScimTokensRepository,
  type ScimToken,
} from '#domain/scim-tokens/scim-tokens.repository.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import { DomainError } from '#platform/errors/domain-error.js';

/** How many good tokens an organization may have: one an integration is what they are for. */
const MOST_TOKENS = 100;

/** A token that was just made, told this once. */
export interface NewToken {
  readonly scimToken: ScimToken;
  readonly secret: string;
  /** How people become members of the organization from now on. */
  readonly membership: Membership;
}

/** The tokens with which an organization's identity provider provisions its people. */
@Injectable()
export class ScimTokens {
  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly tokens: ScimTokensRepository,
    private readonly audit: AuditLog,
  ) {}

  /** The tokens that are good, the newest first. */
  list({ orgId }: Admin): Promise<ScimToken[]> {
    return this.tokens.list(this.dataSource.manager, orgId);
  }

  /**
   * Makes a token. The first one of the organization sets its membership to `scim_only`: no sign-in makes a member any more, until
   * an admin says otherwise.
   *
   * @throws DomainError admin_required, limit_reached
   */
  async create(
    admin: Admin,
    { description, expiresInDays }: { description: string; expiresInDays: number },
    origin: AuditOrigin,
  ): Promise<NewToken> {
    const { token: secret, hash } = mintScimToken();
    const { id: createdBy, orgId } = admin;
    return this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      // Its row lock makes those who create wait.
      const { before, membership } = await this.organizations.beginProvisioning(tx, orgId);
      if ((await this.tokens.list(tx, orgId)).length >= MOST_TOKENS) {
        throw new DomainError(
          'limit_reached',
          `An organization can have ${MOST_TOKENS} SCIM tokens. Revoke one that is not needed first.`,
        );
      }
      const scimToken = await this.tokens.insert(tx, {
        orgId,
        hash,
        description,
        createdBy,
        expiresInDays,
      });
      await this.audit.record(tx, {
        type: 'scim_token_created',
        actorId: admin.id,
        subjectId: null,
        orgId,
        origin,
        details: {
          scim_token_id: scimToken.id,
          description,
          expires_at: scimToken.expiresAt.toISOString(),
        },
      });
      if (before !== membership) {
        const details = { membership: { from: before, to: membership } };
        await this.audit.record(tx, {
          type: 'org_updated',
          actorId: admin.id,
          subjectId: null,
          orgId,
          origin,
          details,
        });
      }
      return { scimToken, secret, membership };
    });
  }

  /**
   * Ends a token at once: whoever revokes it first has revoked it.
   *
   * @throws DomainError admin_required; not_found for a token that is not, or no longer, one of the organization's
   */
  async revoke(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await this.dataSource.transaction(async (tx) => {
      await this.members.holdAdmin(tx, admin);
      if (!isUuid(id) || !(await this.tokens.revoke(tx, admin.orgId, id))) {
        throw new DomainError('not_found', 'Your organization has no such SCIM token.');
      }
      await this.audit.record(tx, {
        type: 'scim_token_revoked',
        actorId: admin.id,
        subjectId: null,
        orgId: admin.orgId,
        origin,
        details: { scim_token_id: id.toLowerCase() },
      });
    });
  }
}
