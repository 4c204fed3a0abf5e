import { countLiveTokens } from './ending-tokens.repository.js';
import { Inject, Injectable, Logger } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { GitHubPermissions } from '../app/answers.js';
import { githubSuspended } from '../app/github-failure.js';
import { GitHubApp, type MintedToken } from '../app/github-app.service.js';
import {
  listInstallations,
  type LinkedInstallation,
} from '../installations/github-installations.repository.js';
import { allowsAllRepositories } from '../installations/repository-rule.repository.js';
import { Issuance, type Denied } from '#domain/access/issuance/issuance.repository.js';
import { recordRefusedAccess } from '#domain/access/issuance/refused-access.repository.js';
import { refusedIssuance, type DeniedSession } from '#domain/access/issuance/refused-issuance.js';
import { newUuid } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sealSecret } from '#platform/crypto/sealed-secret.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  GITHUB_TOKEN,
  ownsOwnDomain,
  queueUndelivered,
  type SealedToken,
} from './github-tokens.repository.js';
import {
  chooseInstallation,
  isNamedAmong,
  isWithin,
  permissionsOf,
  repositoriesOf,
  type AskedToken,
} from './token-request.js';
import { reachOfInstallations } from './reached-installations.repository.js';
import { SEALED_TOKEN } from './token-queue.repository.js';
import { TokenRevoker } from './token-revoker.service.js';

/** The user who asks for a token, with the session of the request. */
export interface TokenHolder {
  readonly userId: string;
  readonly orgId: string;
  readonly sessionId: string;
  readonly denied: DeniedSession;
}

/**
 * An issued token as its user gets it. `repositories` is null if the token opens every repository
 * of the installation.
 */
export interface IssuedGitHubToken {
  readonly token: string;
  readonly expiresAt: Date;
  readonly permissions: GitHubPermissions;
  readonly repositories: readonly string[] | null;
}

/**
 * The error for the denial `withheld`: while GitHub issued the token, the installation was unlinked
 * or suspended, or the admins forbade tokens for all repositories.
 */
const WITHHELD = [
  'not_found',
  'The link or the settings of this GitHub installation changed at this moment. Try again.',
] as const;

/**
 * Issues GitHub tokens. First GitHub issues the token to this service. Then one statement locks and
 * checks user, session and installation, and records the encrypted token. Only then does the user
 * get the token. If the statement refuses to record the token, the token is queued for revocation
 * and the user does not get it.
 */
@Injectable()
export class GitHubTokens {
  readonly #log = new Logger('github');

  constructor(
    @Inject(CONFIG) private readonly config: Pick<Config, 'secrets'>,
    private readonly dataSource: DataSource,
    private readonly app: GitHubApp,
    private readonly issuance: Issuance,
    private readonly revoker: TokenRevoker,
  ) {}

  /** Lists the installations that an organization has linked. No access rule is checked. */
  list(orgId: string): Promise<LinkedInstallation[]> {
    return listInstallations(this.dataSource.manager, orgId);
  }

  /** Lists the installations of the user's organization that admit the user. */
  async listReached(holder: Pick<TokenHolder, 'orgId' | 'userId' | 'sessionId'>) {
    const { manager } = this.dataSource;
    const linked = await listInstallations(manager, holder.orgId);
    const reaches = await reachOfInstallations(manager, holder);
    return linked.filter(({ id }) => reaches.get(id)?.isReached === true);
  }

  /**
   * Returns true if the admins of an organization allow tokens that open every repository of an
   * installation.
   */
  allowsAll(orgId: string): Promise<boolean> {
    return allowsAllRepositories(this.dataSource.manager, orgId);
  }

  /**
   * Counts the valid tokens of each installation of an organization, by the id of the installation.
   */
  countLive(orgId: string): Promise<ReadonlyMap<number, number>> {
    return countLiveTokens(this.dataSource.manager, orgId);
  }

  /**
   * Issues a GitHub token to a user.
   *
   * @throws DomainError github_not_configured, invalid_request, permission_not_allowed, not_found,
   *   github_suspended, github_unavailable, and the errors of {@link refusedIssuance}, such as
   *   account_inactive or not_assigned
   */
  async issue(
    holder: TokenHolder,
    asked: AskedToken,
    origin: AuditOrigin,
  ): Promise<IssuedGitHubToken> {
    const settings = this.app.settings;
    const permissions = permissionsOf(asked.permissions);
    const installation = await this.#installationFor(holder, asked.owner, origin);
    await this.#assertNamed(holder.orgId, asked);
    const repositories = repositoriesOf(asked.repositories, installation.owner);
    const minted = await this.app.mint({
      installationId: installation.id,
      repositories,
      permissions,
    });
    const { token: secret, ...rest } = minted;
    const { userId, orgId, sessionId } = holder;
    const token = {
      userId,
      orgId,
      sessionId,
      ...rest,
      id: newUuid(),
      installationId: installation.id,
      owner: installation.owner,
      sealed: await sealSecret(this.config.secrets, SEALED_TOKEN, secret),
    };
    if (!isWithin(minted.permissions, permissions)) {
      await this.#discard(token, secret);
      throw new DomainError('github_unavailable', 'GitHub gave a token that may do too much.', {
        cause: new Error(`${settings.apiUrl} ignores the permissions that were asked for`),
      });
    }
    return this.#record(token, minted, holder, origin);
  }

  /**
   * Checks that a request names its repositories, unless the admins allow tokens that open every
   * repository.
   *
   * @throws DomainError invalid_request
   */
  async #assertNamed(orgId: string, { repositories }: AskedToken): Promise<void> {
    if (repositories !== undefined) return;
    if (await allowsAllRepositories(this.dataSource.manager, orgId)) return;
    const detail =
      'Name the `repositories` that the token is for: your organization gives no token for all of them.';
    throw new DomainError('invalid_request', detail);
  }

  /**
   * Returns the installation that a request is about. The access rules are checked before the
   * request to GitHub, so that a user who is refused cannot make GitHub issue tokens.
   */
  async #installationFor(
    holder: TokenHolder,
    owner: string | undefined,
    origin: AuditOrigin,
  ): Promise<LinkedInstallation> {
    const { orgId, userId } = holder;
    const { manager } = this.dataSource;
    if (!(await ownsOwnDomain(manager, userId))) {
      throw refusedIssuance({ denial: 'domain_not_owned' }, WITHHELD, holder.denied);
    }
    const linked = await listInstallations(manager, orgId);
    const reaches = await reachOfInstallations(manager, holder);
    const reached = linked.filter(({ id }) => reaches.get(id)?.isReached === true);
    const isRestricted = [...reaches.values()].some((reach) => reach.isRestricted);
    // If access rules exist, an owner that is not linked gives the same error as an owner to which
    // the user is not assigned. So the error does not reveal which owners are linked.
    if (isRestricted && !isNamedAmong(reached, owner)) {
      return this.#refuse(holder, { denial: 'not_assigned' }, owner ?? null, origin);
    }
    const installation = chooseInstallation(reached, owner);
    const unmet = reaches.get(installation.id)?.unmet;
    if (unmet) {
      const denied = { denial: 'condition_unmet', conditions: unmet } as const;
      return this.#refuse(holder, denied, installation.owner, origin);
    }
    if (installation.suspended) throw githubSuspended();
    return installation;
  }

  /**
   * Records in the audit log that a user may not use the installation of a GitHub owner, and throws
   * the error of the denial.
   */
  async #refuse(
    holder: TokenHolder,
    outcome: Denied,
    owner: string | null,
    origin: AuditOrigin,
  ): Promise<never> {
    const target = { kind: 'github_installation', name: owner } as const;
    await recordRefusedAccess(this.dataSource.manager, holder, target, outcome, origin);
    throw refusedIssuance(outcome, WITHHELD, holder.denied);
  }

  async #record(
    token: SealedToken,
    minted: MintedToken,
    holder: TokenHolder,
    origin: AuditOrigin,
  ): Promise<IssuedGitHubToken> {
    try {
      const request = { ...token, auditId: newUuid(), origin };
      const outcome = await this.issuance.issue(GITHUB_TOKEN, request);
      if ('denial' in outcome) return await this.#refuse(holder, outcome, token.owner, origin);
      return { ...minted, expiresAt: outcome.issued.expiresAt };
    } catch (error) {
      await this.#discard(token, minted.token);
      throw error;
    }
  }

  /**
   * Revokes a token that no user gets. If the token cannot be queued because of a fault of the
   * database, the service asks GitHub to revoke it at once. If that fails too, the token is valid
   * until it expires.
   */
  async #discard(token: SealedToken, secret: string): Promise<void> {
    try {
      await queueUndelivered(this.dataSource.manager, token);
      this.revoker.wake();
    } catch {
      await this.app.revoke(secret).catch(() => {
        this.#log.warn({ tokenId: token.id }, 'a token that no user got expires by itself');
      });
    }
  }
}
