import { Injectable } from '@nestjs/common';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { validate as isUuid } from 'uuid';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { notedToken, type NotedSecret } from '#domain/audit/noted-act.js';
import { Members, adminRequired } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { Membership } from '#domain/organizations/membership.js';
import {
  OrganizationsRepository,
  type OrganizationSettings,
} from '#domain/organizations/organizations.repository.js';
import {
  listRefusals,
  type ListedRefusal,
} from '#domain/directory/scim-tokens/scim-refusals.repository.js';
import {
  findTokenRotation,
  hadScimToken,
  insertScimToken,
  listScimTokens,
  revokeScimToken,
  mintScimToken,
  type ScimToken,
  type TokenRotation,
} from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import { followScimToken } from '#domain/directory/api-tokens/api-tokens.repository.js';
import { endDevicesOfOrganization } from '#domain/oauth/grants/device-codes.repository.js';
import { expiresSoon } from '#domain/directory/scim-tokens/token-expiry.js';
import { ApiTokens } from './api-tokens.js';
import { endReplaced } from './rotation-by-program.js';
import { Clock } from '#platform/clock/clock.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  confirmSecret,
  listUnconfirmed,
  type ListedSecret,
} from '../database-failover/reconciliation/listed-secrets.repository.js';

/** The most valid SCIM tokens that an organization can have. */
const MOST_TOKENS = 100;

/** The name of the field that has the id of a secret in audit events, by the kind of the secret. */
const ID_OF_SECRET = {
  scim_token: 'scim_token_id',
  api_token: 'api_token_id',
  client_secret: 'secret_id',
} as const satisfies Record<ListedSecret['secret'], string>;

/** The most refused SCIM writes that a list shows. */
const MOST_REFUSALS = 50;

/** The properties that an admin chooses for a new SCIM token. */
export interface WantedToken {
  readonly description: string;
  readonly expiresInDays: number;
  /** The id of the token that the new token replaces, as the request states it. */
  readonly replaces?: string | undefined;
}

/** A valid SCIM token, as the list of tokens shows it. */
export interface ListedToken extends ScimToken {
  /** True if the token expires within 30 days, so that a page warns of it. */
  readonly expiresSoon: boolean;
}

/**
 * A new SCIM token. Only this result contains its secret, because the database stores only the
 * hash.
 */
export interface NewToken {
  readonly scimToken: ScimToken;
  readonly secret: string;
  /** The rule by which users become members of the organization from now on. */
  readonly membership: Membership;
}

/**
 * The settings and the SCIM tokens of an organization, as its admins read and change them. After
 * the database has lost commits, admins also confirm its SCIM tokens, API tokens and client secrets
 * by this class.
 */
@Injectable()
export class OrganizationAdmin {
  /** Lists, creates, rotates and revokes the API tokens of organizations. */
  readonly apiTokens: ApiTokens;

  constructor(
    private readonly dataSource: DataSource,
    private readonly members: Members,
    private readonly organizations: OrganizationsRepository,
    private readonly audit: AuditLog,
    private readonly clock: Clock,
  ) {
    this.apiTokens = new ApiTokens({ dataSource, members, organizations, audit, clock });
  }

  /**
   * Returns the settings of the organization.
   *
   * @throws DomainError admin_required
   */
  async show({ orgId }: Admin): Promise<OrganizationSettings> {
    const settings = await this.organizations.settings(this.dataSource.manager, orgId);
    if (!settings) throw adminRequired();
    return settings;
  }

  /**
   * Changes settings of the organization. The audit event has the old and the new value of each
   * changed setting; without a change there is no event. If the login by device codes is switched
   * off, the sessions that device codes opened end, and so do unused device codes.
   *
   * @param check refuses the change by an error if the locked settings are not as the admin saw
   *   them
   * @throws DomainError admin_required
   */
  async change(
    admin: Admin,
    change: Partial<OrganizationSettings>,
    origin: AuditOrigin,
    check?: (current: OrganizationSettings) => void,
  ): Promise<OrganizationSettings> {
    const { orgId } = admin;
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const before = await this.organizations.lockSettings(tx, orgId);
      check?.(before);
      const after = { ...before, ...change };
      const details = differences(before, after);
      if (Object.keys(details).length === 0) return before;
      await this.organizations.changeSettings(tx, orgId, after);
      if (before.device_grant && !after.device_grant) {
        await endDevicesOfOrganization(tx, orgId);
      }
      await this.#record(tx, 'org_updated', admin, origin, details);
      return after;
    });
  }

  /** Lists the valid SCIM tokens of the organization, the newest first. */
  async listTokens({ orgId }: Admin): Promise<ListedToken[]> {
    const tokens = await listScimTokens(this.dataSource.manager, orgId);
    const now = this.clock.now();
    return tokens.map((token) => ({ ...token, expiresSoon: expiresSoon(token, now) }));
  }

  /** Lists the latest SCIM writes of the identity provider that were refused, the newest first. */
  listRefusals({ orgId }: Admin): Promise<ListedRefusal[]> {
    return listRefusals(this.dataSource.manager, orgId, MOST_REFUSALS);
  }

  /**
   * Returns true if the organization never had a SCIM token. A page then warns that the first token
   * changes the setting `membership` to `scim_only`, by which sign-ins create no members.
   */
  async isFirstToken({ orgId }: Admin): Promise<boolean> {
    return !(await hadScimToken(this.dataSource.manager, orgId));
  }

  /**
   * Returns a SCIM token and the valid token that replaces it.
   *
   * @throws DomainError not_found for a token of another organization, and for an ended token that
   *   no valid one replaces
   */
  async findRotation({ orgId }: Admin, id: string): Promise<TokenRotation> {
    const { manager } = this.dataSource;
    const found = isUuid(id) && (await findTokenRotation(manager, orgId, id));
    if (!found || (found.oldEndedAt !== null && found.replacement === null)) throw noToken();
    return found;
  }

  /**
   * Creates a SCIM token. The first token of an organization sets its membership to `scim_only`:
   * until an admin changes the setting, no sign-in creates a member.
   *
   * A valid token has at most one valid replacement. If the replaced token itself replaced a token
   * that is still valid, that oldest token ends. So at most two tokens of a chain are valid.
   *
   * @throws DomainError admin_required, limit_reached; not_found and rotation_pending for the token
   *   to replace
   */
  async createToken(admin: Admin, wanted: WantedToken, origin: AuditOrigin): Promise<NewToken> {
    const { token: secret, hash } = mintScimToken();
    const { id: createdBy, orgId } = admin;
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      // This locks the row of the organization, so that other requests that create a token wait and
      // cannot exceed the limit.
      const { before, membership } = await this.organizations.beginProvisioning(tx, orgId);
      const replaces = wanted.replaces?.toLowerCase() ?? null;
      assertMayCreate(await listScimTokens(tx, orgId), replaces);
      const { description, expiresInDays } = wanted;
      const token = { orgId, hash, description, createdBy, expiresInDays, replaces };
      const scimToken = await insertScimToken(tx, token);
      const details = {
        scim_token_id: scimToken.id,
        description,
        expires_at: scimToken.expiresAt.toISOString(),
        ...(replaces === null ? {} : { replaces }),
      };
      const named = { id: scimToken.id, name: description };
      const made = notedToken('secret_made', 'scim_token', orgId, named);
      await this.#record(tx, 'scim_token_created', admin, origin, details, [made]);
      const older = replaces === null ? [] : await endReplaced(tx, orgId, replaces);
      for (const { id, description: name } of older) {
        await this.#recordEnd(tx, admin, { id, name }, origin);
      }
      if (before !== membership) {
        const change = { membership: { from: before, to: membership } };
        await this.#record(tx, 'org_updated', admin, origin, change);
      }
      return { scimToken, secret, membership };
    });
  }

  /**
   * Revokes a SCIM token at once. If several requests revoke it, one succeeds.
   *
   * API tokens that may rotate the revoked token may then rotate its replacement. If there is no
   * replacement, they may rotate the token that the revoked one replaced, as long as that token is
   * valid.
   *
   * @throws DomainError admin_required; not_found for a token that is not, or no longer, a token of
   *   the organization
   */
  async revokeToken(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      await this.organizations.lockSettings(tx, admin.orgId);
      const revoked = isUuid(id) && (await revokeScimToken(tx, admin.orgId, id));
      if (!revoked) throw noToken();
      const next = await otherOfRotation(tx, admin.orgId, revoked.id);
      if (next !== undefined) await followScimToken(tx, admin.orgId, revoked.id, next);
      await this.#recordEnd(tx, admin, { id: revoked.id, name: revoked.description }, origin);
    });
  }

  /**
   * Lists the secrets, such as SCIM tokens, that an admin must still confirm after the database
   * lost commits, the newest first.
   */
  listSecretsToConfirm({ orgId }: Admin): Promise<ListedSecret[]> {
    return listUnconfirmed(this.dataSource.manager, orgId);
  }

  /**
   * Records that an admin has confirmed a secret after the database lost commits. If several admins
   * confirm it at once, one succeeds.
   *
   * @throws DomainError admin_required; not_found for a secret of another organization, and for a
   *   confirmed one
   */
  async confirmSecret(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const confirmed = isUuid(id) ? await confirmSecret(tx, admin, id) : undefined;
      if (!confirmed) {
        throw new DomainError('not_found', 'Your organization has no such secret to confirm.');
      }
      const { secret, secretId, clientId, act, isLost } = confirmed;
      const about = { [ID_OF_SECRET[secret]]: secretId };
      const client = clientId === null ? {} : { client_id: clientId };
      const details = { ...about, ...client, act, database_lost: isLost };
      await this.#record(tx, 'secret_confirmed', admin, origin, details);
    });
  }

  /** Records in the audit log that a SCIM token was revoked. */
  #recordEnd(
    tx: EntityManager,
    admin: Admin,
    token: { readonly id: string; readonly name: string },
    origin: AuditOrigin,
  ): Promise<void> {
    const ended = notedToken('secret_ended', 'scim_token', admin.orgId, token);
    const details = { scim_token_id: token.id };
    return this.#record(tx, 'scim_token_revoked', admin, origin, details, [ended]);
  }

  #record(
    tx: EntityManager,
    type: 'org_updated' | 'scim_token_created' | 'scim_token_revoked' | 'secret_confirmed',
    { id: actorId, orgId }: Admin,
    origin: AuditOrigin,
    details: Readonly<Record<string, unknown>>,
    acts: readonly NotedSecret[] = [],
  ): Promise<void> {
    return this.audit.record(tx, { type, actorId, subjectId: null, orgId, origin, details, acts });
  }
}

/**
 * Checks that an organization may get another SCIM token, and that the token to replace is valid
 * and has no replacement yet.
 *
 * @throws DomainError limit_reached, not_found, rotation_pending
 */
function assertMayCreate(valid: readonly ScimToken[], replaces: string | null): void {
  if (valid.length >= MOST_TOKENS) {
    throw new DomainError(
      'limit_reached',
      `An organization can have ${MOST_TOKENS} SCIM tokens. Revoke one that is not needed first.`,
    );
  }
  if (replaces === null) return;
  if (!valid.some(({ id }) => id === replaces)) throw noToken();
  if (valid.some((token) => token.replaces === replaces)) {
    throw new DomainError(
      'rotation_pending',
      'A new token replaces this one already. Use it and end this one, or end the new one first.',
    );
  }
}

/**
 * Returns the id of the valid token that replaces a SCIM token. If there is none, returns the id of
 * the token that the given one replaced, if that token is valid; otherwise undefined.
 */
async function otherOfRotation(
  tx: EntityManager,
  orgId: string,
  id: string,
): Promise<string | undefined> {
  const found = await findTokenRotation(tx, orgId, id);
  if (!found) return undefined;
  if (found.replacement) return found.replacement.id;
  const { replaces } = found.old;
  const before = replaces === null ? undefined : await findTokenRotation(tx, orgId, replaces);
  return before?.oldEndedAt === null ? before.old.id : undefined;
}

function noToken(): DomainError {
  return new DomainError('not_found', 'Your organization has no such SCIM token.');
}

function differences(
  before: OrganizationSettings,
  after: OrganizationSettings,
): Record<string, { readonly from: string | boolean; readonly to: string | boolean }> {
  const names = ['name', 'membership', 'device_grant', 'aws_roles'] as const;
  return Object.fromEntries(
    names
      .filter((name) => before[name] !== after[name])
      .map((name) => [name, { from: before[name], to: after[name] }]),
  );
}
