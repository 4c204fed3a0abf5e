import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { AuditType } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { Members } from '#domain/directory/members.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { GitHubInstallation } from '../app/answers.js';
import { GitHubApp } from '../app/github-app.service.js';
import { recordDelivery } from '../installations/github-deliveries.repository.js';
import {
  changeInstallation,
  linkInstallation,
  removeInstallation,
  renameOwner,
  type LinkedInstallation,
} from '../installations/github-installations.repository.js';
import { setAllRepositories } from '../installations/repository-rule.repository.js';
import {
  forgetInstallation,
  queueInstallation,
  queueUnnamed,
} from '../tokens/ending-tokens.repository.js';
import { TokenRevoker } from '../tokens/token-revoker.service.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { systemClock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import { withTransactionRetry } from '#platform/database/statements/transaction-retry.js';
import { DataSource, type EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { chooseLink, type NamedInstallation } from './link-choice.js';
import type { WebhookEvent } from './webhook-event.js';

const PURPOSE = 'github-link';
/**
 * The lifetime, in seconds, of the encrypted `state` that the browser of an admin takes to GitHub
 * and back. The admin must finish on the pages of GitHub within this time.
 */
const STATE_SECONDS = 600;

/** The payload of the encrypted `state` that the browser of an admin takes to GitHub and back. */
interface LinkState extends NamedInstallation {
  readonly codeVerifier: string;
}

/** The query parameters with which GitHub sends the browser of an admin back. */
export interface LinkAnswer {
  readonly state: string;
  readonly code: string | undefined;
  /**
   * The id of the installation that the admin has just made, as GitHub sends it; undefined if it
   * sends none. The service uses it only if the link was begun without the id or owner of an
   * installation.
   */
  readonly installationId: number | undefined;
}

/**
 * Links installations of the GitHub App to organizations, and applies the changes that GitHub
 * reports by webhooks.
 */
@Injectable()
export class GitHubLinks {
  constructor(
    private readonly dataSource: DataSource,
    private readonly app: GitHubApp,
    private readonly states: SingleUseStates,
    private readonly members: Members,
    private readonly revoker: TokenRevoker,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Begins to link an installation: returns the URL at GitHub where the admin authorizes the App.
   * The parameter `state` in this URL is bound to the session of the admin.
   *
   * @throws DomainError github_not_configured
   */
  async begin(admin: Admin, named: NamedInstallation, redirectUri: string): Promise<string> {
    const { webUrl, clientId } = this.app.settings;
    const codeVerifier = systemRandom.token();
    const payload: LinkState = { ...named, codeVerifier };
    const state = await this.states.seal(PURPOSE, payload, {
      binding: admin.sessionId,
      ttlSeconds: STATE_SECONDS,
    });
    const query = new URLSearchParams({
      client_id: clientId,
      redirect_uri: redirectUri,
      state,
      code_challenge: hash('sha256', codeVerifier, 'base64url'),
      code_challenge_method: 'S256',
      allow_signup: 'false',
    });
    return `${webUrl}/login/oauth/authorize?${query.toString()}`;
  }

  /**
   * Links an installation, after GitHub has confirmed that the admin administers it.
   *
   * @throws DomainError invalid_state, sign_in_failed, sign_in_refused, not_found, invalid_request,
   *   github_unavailable, installation_linked for an installation of another organization,
   *   admin_required
   */
  async complete(
    admin: Admin,
    { state, code, installationId }: LinkAnswer,
    redirectUri: string,
    origin: AuditOrigin,
  ): Promise<GitHubInstallation> {
    const binding = { binding: admin.sessionId };
    const { codeVerifier, ...named } = await this.states.redeem<LinkState>(PURPOSE, state, binding);
    if (code === undefined) {
      throw new DomainError('sign_in_failed', 'The authorization at GitHub was cancelled.');
    }
    const found = await this.app.administeredInstallations({ code, codeVerifier, redirectUri });
    const isUnnamed = named.installationId === undefined && named.owner === undefined;
    const chosen = chooseLink(found, isUnnamed ? { installationId } : named);
    await withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const by = { orgId: admin.orgId, userId: admin.id, now: systemClock.now() };
      if (!(await linkInstallation(tx, chosen, by))) {
        const detail = 'Another organization of this service has linked this installation.';
        throw new DomainError('installation_linked', detail);
      }
      await this.#recordAct(tx, 'github_installation_linked', admin, origin, chosen);
    });
    return chosen;
  }

  /**
   * Removes the link of an installation, and queues the tokens of the installation for revocation
   * at GitHub.
   *
   * @returns the number of these tokens
   * @throws DomainError not_found, admin_required
   */
  async unlink(admin: Admin, id: number, origin: AuditOrigin): Promise<number> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      const removed = await removeInstallation(tx, id, admin.orgId);
      if (!removed) {
        throw new DomainError('not_found', 'Your organization has linked no such installation.');
      }
      const ending = await queueInstallation(tx, id, admin.id);
      if (ending > 0) this.revoker.wakeAfter(tx);
      await this.#recordAct(tx, 'github_installation_unlinked', admin, origin, removed);
      return ending;
    });
  }

  /**
   * Sets if tokens may open every repository of an installation. If the admin forbids this, the
   * tokens that open every repository are queued for revocation at GitHub.
   *
   * @returns the number of these tokens
   * @throws DomainError admin_required
   */
  async allowAllRepositories(
    admin: Admin,
    isAllowed: boolean,
    origin: AuditOrigin,
  ): Promise<number> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      await this.members.holdAdmin(tx, admin);
      if (!(await setAllRepositories(tx, admin.orgId, isAllowed))) return 0;
      const ending = isAllowed ? 0 : await queueUnnamed(tx, admin.orgId, admin.id);
      if (ending > 0) this.revoker.wakeAfter(tx);
      const { id: actorId, orgId } = admin;
      const change = { from: !isAllowed, to: isAllowed };
      const details = { github_all_repositories: change };
      const event = {
        type: 'org_updated',
        actorId,
        subjectId: null,
        orgId,
        origin,
        details,
      } as const;
      await this.audit.record(tx, event);
      return ending;
    });
  }

  /**
   * Applies the change that a webhook reports, once. The id of the delivery is recorded in the
   * transaction of the change, so that a repeated delivery changes nothing.
   *
   * @returns false for a delivery that was applied before
   */
  apply(deliveryId: string, event: WebhookEvent, origin: AuditOrigin): Promise<boolean> {
    return withTransactionRetry(this.dataSource, async (tx) => {
      if (!(await recordDelivery(tx, deliveryId))) return false;
      await this.#change(tx, event, origin);
      return true;
    });
  }

  async #change(tx: EntityManager, event: WebhookEvent, origin: AuditOrigin): Promise<void> {
    if (event.kind === 'renamed') await renameOwner(tx, event.accountId, event.owner);
    if (event.kind === 'deleted') {
      const removed = await removeInstallation(tx, event.id, null);
      await forgetInstallation(tx, event.id);
      if (removed) {
        await this.#recordEvent(tx, 'github_installation_unlinked', removed, origin, 'deleted');
      }
    }
    if (event.kind === 'changed') {
      const changed = await changeInstallation(tx, event.id, event.change);
      if (changed) {
        await this.#recordEvent(tx, 'github_installation_changed', changed, origin, event.action);
      }
    }
  }

  #recordAct(
    tx: EntityManager,
    type: AuditType,
    { id: actorId, orgId }: Admin,
    origin: AuditOrigin,
    installation: Pick<LinkedInstallation, 'id' | 'owner' | 'repositorySelection'>,
  ): Promise<void> {
    const details = detailsOf(installation);
    return this.audit.record(tx, { type, actorId, subjectId: null, orgId, origin, details });
  }

  #recordEvent(
    tx: EntityManager,
    type: AuditType,
    installation: LinkedInstallation,
    origin: AuditOrigin,
    action: string,
  ): Promise<void> {
    const { orgId } = installation;
    const details = { ...detailsOf(installation), github_action: action };
    return this.audit.record(tx, { type, actorId: null, subjectId: null, orgId, origin, details });
  }
}

function detailsOf({
  id,
  owner,
  repositorySelection,
}: Pick<LinkedInstallation, 'id' | 'owner' | 'repositorySelection'>) {
  return { installation_id: id, owner, repository_selection: repositorySelection };
}
