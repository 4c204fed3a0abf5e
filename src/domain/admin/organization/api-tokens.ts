import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { AuditLog } from '#domain/audit/audit.repository.js';
import { notedToken } from '#domain/audit/noted-act.js';
import {
  API_SCOPES,
  endApiTokenAfter,
  findApiToken,
  insertApiToken,
  listApiTokens,
  listOrphans,
  mintApiToken,
  revokeApiToken,
  revokeReplacedTokens,
  type ApiScope,
  type ApiToken,
  type NewApiToken,
  type Program,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import type { Members } from '#domain/directory/members.service.js';
import { listScimTokens } from '#domain/directory/scim-tokens/scim-tokens.repository.js';
import { expiresSoon } from '#domain/directory/scim-tokens/token-expiry.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import type { Clock } from '#platform/clock/clock.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { isUuid } from '#platform/text/single-line.js';
import { rotateByProgram, type RotatedByProgram } from './rotation-by-program.js';

/** The most valid API tokens that an organization can have. */
const MOST_TOKENS = 100;

/**
 * The days for which the list of API tokens still shows those that ended together with the access
 * of the admins who made them.
 */
const DAYS_OF_ORPHANS = 30;

/** The properties that an admin chooses for a new API token. */
export interface WantedApiToken {
  readonly name: string;
  readonly scopes: readonly ApiScope[];
  readonly expiresInDays: number;
  readonly allowedCidrs: readonly string[];
  /** The ids of the SCIM tokens that the token may rotate, as the request states them. */
  readonly scimTokenIds: readonly string[];
}

/** The properties that an admin chooses for the rotation of an API token. */
export interface WantedRotation {
  /** The days until the new token expires; by default those for which the old one was made. */
  readonly expiresInDays?: number | undefined;
  /** The hours after which the old token ends, if it is still valid; 0 ends it at once. */
  readonly overlapHours: number;
}

/**
 * A new API token. Only this result contains its secret, because the database has the hash alone.
 */
export interface MadeApiToken {
  readonly apiToken: ApiToken;
  readonly secret: string;
}

/** A valid API token, as the list of tokens shows it. */
export interface ListedApiToken extends ApiToken {
  /** True if the token expires within 30 days, so that a page warns of it. */
  readonly expiresSoon: boolean;
}

/** The API tokens of an organization, as the list for its admins shows them. */
export interface ListedApiTokens {
  readonly valid: readonly ListedApiToken[];
  /**
   * The tokens that ended with the access of the admins who made them, and that have no successor
   * yet.
   */
  readonly orphans: readonly ApiToken[];
}

/** The dependencies of {@link ApiTokens}. */
export interface ApiTokenParts {
  readonly dataSource: DataSource;
  readonly members: Members;
  readonly organizations: OrganizationsRepository;
  readonly audit: AuditLog;
  readonly clock: Clock;
}

/**
 * Lists, creates, rotates and revokes the API tokens of organizations for their admins. It also
 * rotates SCIM tokens for programs.
 */
export class ApiTokens {
  constructor(private readonly parts: ApiTokenParts) {}

  /**
   * Lists the valid API tokens of the organization, the newest first, and the tokens that ended
   * with the access of their makers.
   */
  async list({ orgId }: Admin): Promise<ListedApiTokens> {
    const { manager } = this.parts.dataSource;
    const now = this.parts.clock.now();
    const valid = await listApiTokens(manager, orgId);
    return {
      valid: valid.map((token) => ({ ...token, expiresSoon: expiresSoon(token, now) })),
      orphans: await listOrphans(manager, orgId, DAYS_OF_ORPHANS),
    };
  }

  /**
   * Returns an API token, and the valid token that replaces it, if there is one.
   *
   * @throws DomainError not_found for an ended token that cannot be replaced and has no valid
   *   successor, and for a token of another organization
   */
  async find(
    { orgId }: Admin,
    id: string,
  ): Promise<{ readonly token: ApiToken; readonly successor: ApiToken | undefined }> {
    const found = isUuid(id) && (await findApiToken(this.parts.dataSource.manager, orgId, id));
    if (!found || !(mayBeReplaced(found.token) || found.successor)) throw noToken();
    return found;
  }

  /**
   * Creates an API token. The SCIM tokens that the API token may rotate must be valid tokens of the
   * organization.
   *
   * @throws DomainError admin_required, limit_reached, not_found
   */
  create(admin: Admin, wanted: WantedApiToken, origin: AuditOrigin): Promise<MadeApiToken> {
    return this.#act(admin, async (tx) => {
      await assertBelowLimit(tx, admin.orgId);
      const named = wanted.scimTokenIds.map((id) => id.toLowerCase());
      const valid = named.length === 0 ? [] : await listScimTokens(tx, admin.orgId);
      if (named.some((id) => !valid.some((token) => token.id === id))) {
        throw new DomainError('not_found', 'Your organization has no such SCIM token.');
      }
      const { name, scopes, allowedCidrs, expiresInDays: lifetimeDays } = wanted;
      const token = { name, scopes: inOrder(scopes), allowedCidrs, lifetimeDays };
      const given = { ...token, scimTokenIds: named, replaces: null };
      return this.#insert(tx, admin, given, origin);
    });
  }

  /**
   * Makes the successor of an API token, with the same scopes and a new secret. The old token may
   * have ended with the access of its maker. If it is still valid, it ends after the overlap, or
   * earlier if an admin revokes it. A token has at most one valid successor. If the old token
   * itself replaced a valid one, that oldest token ends at once, so that at most two are valid.
   *
   * @throws DomainError admin_required, limit_reached, not_found, rotation_pending
   */
  rotate(
    admin: Admin,
    id: string,
    { expiresInDays, overlapHours }: WantedRotation,
    origin: AuditOrigin,
  ): Promise<MadeApiToken> {
    return this.#act(admin, async (tx) => {
      const found = isUuid(id) ? await findApiToken(tx, admin.orgId, id.toLowerCase()) : undefined;
      if (!found || !(mayBeReplaced(found.token) || found.successor)) throw noToken();
      if (found.successor) {
        throw new DomainError(
          'rotation_pending',
          'A new token replaces this one already. Use it and end this one, or end the new one first.',
        );
      }
      await assertBelowLimit(tx, admin.orgId);
      const { token } = found;
      const oldest = await revokeReplacedTokens(tx, admin.orgId, token.id);
      const endsAt = await endApiTokenAfter(tx, token.id, overlapHours);
      const lifetimeDays = expiresInDays ?? token.lifetimeDays;
      const given = { ...token, lifetimeDays, replaces: token.id };
      const made = await this.#insert(tx, admin, given, origin, { token, endsAt });
      const ended = endsAt && overlapHours === 0 ? [...oldest, token] : oldest;
      for (const each of ended) await this.#recordEnd(tx, admin, each, origin);
      return made;
    });
  }

  /**
   * Revokes an API token at once. If several requests revoke it, one succeeds.
   *
   * @throws DomainError admin_required; not_found for a token that is not, or no longer, a token of
   *   the organization
   */
  async revoke(admin: Admin, id: string, origin: AuditOrigin): Promise<void> {
    await this.#act(admin, async (tx) => {
      const revoked = isUuid(id) && (await revokeApiToken(tx, admin.orgId, id));
      if (!revoked) throw noToken();
      await this.#recordEnd(tx, admin, revoked, origin);
    });
  }

  /**
   * Rotates a SCIM token for a program, by the rights of its API token. A de-provisioning may lock
   * the same API tokens in another order. If PostgreSQL therefore cancels the rotation as part of a
   * deadlock, the rotation runs again.
   *
   * @throws DomainError unauthenticated, not_found, token_rotated, rotation_pending
   */
  rotateScimToken(
    program: Program,
    id: string,
    overlapHours: number,
    origin: AuditOrigin,
  ): Promise<RotatedByProgram> {
    const { dataSource, organizations, audit } = this.parts;
    return withTransactionRetry(dataSource, (tx) =>
      rotateByProgram(tx, { organizations, audit }, { program, id, overlapHours, origin }),
    );
  }

  /**
   * Runs an act in a transaction that locks the admin and then the organization. So the acts on the
   * tokens of one organization happen one after another.
   */
  #act<Done>(admin: Admin, act: (tx: EntityManager) => Promise<Done>): Promise<Done> {
    const { dataSource, members, organizations } = this.parts;
    return withTransactionRetry(dataSource, async (tx) => {
      await members.holdAdmin(tx, admin);
      await organizations.lockSettings(tx, admin.orgId);
      return act(tx);
    });
  }

  /** Records in the audit log that an API token was revoked. */
  #recordEnd(
    tx: EntityManager,
    { id: actorId, orgId }: Admin,
    { id, name }: Pick<ApiToken, 'id' | 'name'>,
    origin: AuditOrigin,
  ): Promise<void> {
    return this.parts.audit.record(tx, {
      type: 'api_token_revoked',
      actorId,
      subjectId: null,
      orgId,
      origin,
      details: { api_token_id: id, name },
      acts: [notedToken('secret_ended', 'api_token', orgId, { id, name })],
    });
  }

  /**
   * Stores a new API token with its audit event.
   *
   * @param old the token that the new one replaces, and the end that the rotation gave it;
   *   undefined if the new token replaces none
   */
  async #insert(
    tx: EntityManager,
    { id: createdBy, orgId }: Admin,
    given: Omit<NewApiToken, 'orgId' | 'hash' | 'createdBy'>,
    origin: AuditOrigin,
    old?: { readonly token: ApiToken; readonly endsAt: Date | undefined },
  ): Promise<MadeApiToken> {
    const { token: secret, hash } = mintApiToken();
    const apiToken = await insertApiToken(tx, { ...given, orgId, hash, createdBy });
    const { id, name, scopes, scimTokenIds, allowedCidrs, expiresAt, replaces } = apiToken;
    const oldEnd = old && (old.endsAt ?? old.token.endedAt);
    const acts = [notedToken('secret_made', 'api_token', orgId, { id, name })];
    if (old?.endsAt) {
      acts.push(notedToken('secret_ended', 'api_token', orgId, old.token, old.endsAt));
    }
    await this.parts.audit.record(tx, {
      type: old ? 'api_token_rotated' : 'api_token_created',
      actorId: createdBy,
      subjectId: null,
      orgId,
      origin,
      details: {
        api_token_id: id,
        name,
        scopes,
        allowed_cidrs: allowedCidrs,
        scim_token_ids: scimTokenIds,
        expires_at: expiresAt.toISOString(),
        ...(replaces === null ? {} : { replaces }),
        ...(oldEnd && { replaced_ends_at: oldEnd.toISOString() }),
      },
      acts,
    });
    return { apiToken, secret };
  }
}

/**
 * Returns true for a token that a new one may replace. Such a token is valid, or it ended because
 * its maker lost the access or the role of admin.
 */
function mayBeReplaced({ endedAt, isOrphan, isRevoked, makerDemotedAt }: ApiToken): boolean {
  return endedAt === null || isOrphan || (makerDemotedAt !== null && !isRevoked);
}

async function assertBelowLimit(tx: EntityManager, orgId: string): Promise<void> {
  if ((await listApiTokens(tx, orgId)).length < MOST_TOKENS) return;
  throw new DomainError(
    'limit_reached',
    `An organization can have ${MOST_TOKENS} API tokens. Revoke one that is not needed first.`,
  );
}

function inOrder(scopes: readonly ApiScope[]): ApiScope[] {
  return API_SCOPES.filter((scope) => scopes.includes(scope));
}

function noToken(): DomainError {
  return new DomainError('not_found', 'Your organization has no such API token.');
}
