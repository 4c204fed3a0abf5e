import { Controller, Get, Inject, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { ListedApiToken } from '#domain/admin/organization/api-tokens.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import {
  API_SCOPES,
  ROTATE_SCOPE,
  type ApiScope,
  type ApiToken,
} from '#domain/directory/api-tokens/api-tokens.repository.js';
import { rotationStep } from '#domain/directory/scim-tokens/token-rotation.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';

/** The words for what a token may do with each scope. */
const SCOPE_WORDS: Readonly<Record<ApiScope, string>> = {
  'audit:read': 'Read the audit log',
  'members:read': 'Read the members',
  'applications:read': 'Read the applications',
  'access:read': 'Read who may reach what',
  'scim-tokens:rotate': 'Rotate the SCIM tokens that you choose below',
};

/**
 * Serves `/admin/api-tokens`, where admins create, replace and revoke the API tokens of their
 * programs.
 */
@Controller('admin/api-tokens')
@Route(PAGE_ROUTE)
export class ApiTokensPageController {
  readonly #programsUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly organizationAdmin: OrganizationAdmin,
    private readonly views: Views,
  ) {
    this.#programsUrl = `${config.http.baseUrl}/api/v1/programs`;
  }

  /**
   * Lists the API tokens for an admin.
   *
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the API tokens of the organization' })
  async list(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'api-tokens', async (admin) => {
      const [{ valid, orphans }, scimTokens] = await Promise.all([
        this.organizationAdmin.apiTokens.list(admin),
        this.organizationAdmin.listTokens(admin),
      ]);
      const replaced = new Set(valid.map(({ replaces }) => replaces));
      const lost = [...orphans, ...valid.filter(({ makerDemotedAt }) => makerDemotedAt !== null)];
      return {
        programsUrl: this.#programsUrl,
        expiring: valid.filter(({ expiresSoon, id }) => expiresSoon && !replaced.has(id)).length,
        tokens: valid.map((token) => listedToken(token, valid)),
        lost: lost.filter(({ id }) => !replaced.has(id)).map(shownToken),
        scopes: API_SCOPES.map((scope) => ({ scope, words: SCOPE_WORDS[scope] })),
        scimTokens: scimTokens.map(({ id, description }) => ({ id, description })),
      };
    });
  }

  /**
   * Shows an admin the steps that replace an API token.
   * @throws DomainError admin_required, not_found
   */
  @Get(':id/rotate')
  @Route({ summary: 'Shows the rotation of an API token' })
  async rotate(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'api-token-rotation', async (admin) => {
      const { token, successor } = await this.organizationAdmin.apiTokens.find(admin, id);
      const { endedAt } = token;
      const replacement = successor ?? null;
      return {
        programsUrl: this.#programsUrl,
        step: rotationStep({ oldEndedAt: endedAt, replacement }),
        old: shownToken(token),
        oldEnded: endedAt && moment(endedAt),
        replacement: replacement && shownToken(replacement),
      };
    });
  }
}

/** Returns the facts of an API token that a template shows, with its times as texts. */
function shownToken(token: ApiToken) {
  return {
    id: token.id,
    name: token.name,
    scopes: token.scopes,
    networks: token.allowedCidrs,
    days: token.lifetimeDays,
    rotates: token.scopes.includes(ROTATE_SCOPE) ? token.scimTokenIds.length : 0,
    createdBy: token.createdByEmail,
    created: moment(token.createdAt),
    lastUsed: token.lastUsedAt && moment(token.lastUsedAt),
    expires: moment(token.expiresAt),
    isNarrowed: token.makerDemotedAt !== null,
    ended: token.endedAt && moment(token.endedAt),
  };
}

/**
 * Returns an API token as a row of the list shows it. `isReplaced` is true if another token is
 * replacing it, and `replaces` names the token that it replaces.
 */
function listedToken(token: ListedApiToken, tokens: readonly ListedApiToken[]) {
  return {
    ...shownToken(token),
    expiresSoon: token.expiresSoon,
    isReplaced: tokens.some(({ replaces }) => replaces === token.id),
    replaces: tokens.find(({ id }) => id === token.replaces)?.name ?? null,
  };
}
