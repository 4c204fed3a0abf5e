import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Inject,
  Param,
  Patch,
  Post,
  Query,
  Req,
  Res,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { adminOf } from '#domain/directory/members.service.js';
import { GitHubLinks } from '#domain/github/links/github-links.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { DELETED_JSON, PREFER, sendDeleted } from '#platform/http/request/preference.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import {
  GITHUB_TOKEN_RULE,
  INSTALLATION_ID,
  LINK_CALLBACK,
  LINK_REQUEST,
  type GitHubTokenRule,
  type LinkCallback,
  type LinkRequest,
} from './github.schemas.js';

/**
 * The answer to the request that begins a link between the organization and a GitHub installation.
 */
const AUTHORIZATION_JSON = z
  .object({
    authorization_url: z.string().describe('The URL at GitHub to open in a browser.'),
  })
  .describe('Where the link goes on.');

/** The answer to a change of the rule for GitHub tokens. */
const CHANGED_RULE_JSON = GITHUB_TOKEN_RULE.extend({
  ended: z
    .object({ github_tokens: z.int().describe('The ended GitHub tokens.') })
    .describe('The numbers of what ended.'),
}).describe('The rule for GitHub tokens, and what its change ended.');

/**
 * Serves the links between an organization and the installations of the GitHub App (an App is
 * installed on an account of GitHub). The admins of the organization make and remove the links.
 */
@Controller('v1/credentials/github')
@Route({
  tier: 'general',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: ADMIN_WRITES,
})
export class GitHubLinksController {
  readonly #redirectUri: string;

  constructor(
    @Inject(CONFIG) { http }: Pick<Config, 'http'>,
    private readonly links: GitHubLinks,
    private readonly views: Views,
  ) {
    this.#redirectUri = `${http.baseUrl}/v1/credentials/github/callback`;
    views.register(new URL('views/', import.meta.url));
  }

  @Post('link')
  @Route({
    operation: 'startGitHubLink',
    summary: 'Begins the link of a GitHub installation',
    answers: { 200: AUTHORIZATION_JSON },
    refusals: ['admin_required', 'github_not_configured'],
  })
  @HttpCode(200)
  async begin(
    @Caller() session: VerifiedSession,
    @Body({ schema: LINK_REQUEST }) { owner, installation_id: installationId }: LinkRequest,
  ): Promise<{ readonly authorization_url: string }> {
    const named = { owner, installationId };
    const url = await this.links.begin(adminOf(session), named, this.#redirectUri);
    return { authorization_url: url };
  }

  /**
   * Handles the request of an admin's browser that GitHub has redirected back to the service, after
   * the admin confirmed the link at GitHub. The `state` in the query can be used only once, even if
   * the link then fails.
   */
  @Get('callback')
  @Route({
    audience: 'ui',
    errors: 'html',
    head: false,
    auth: { ...ADMIN_READS, origin: 'any' },
    operation: 'completeGitHubLink',
    summary: 'Takes an admin back from GitHub',
    query: 'open',
    answers: { 200: { 'text/html': 'text' } },
    refusals: [
      'admin_required',
      'not_found',
      'invalid_state',
      'installation_linked',
      'github_unavailable',
      'github_not_configured',
    ],
  })
  async complete(
    @Caller() session: VerifiedSession,
    @Query({ schema: LINK_CALLBACK }) query: LinkCallback,
    @ClientOrigin() origin: AuditOrigin,
    @Req() { method }: Request,
  ): Promise<string> {
    // Nest calls the handler of GET for HEAD as well. A link preview by HEAD must not use up the
    // `state`.
    if (method !== 'GET') {
      throw new DomainError('method_not_allowed', 'This URL allows only GET.');
    }
    const { state, code, installation_id: installationId } = query;
    const answer = { state, code, installationId };
    const linked = await this.links.complete(adminOf(session), answer, this.#redirectUri, origin);
    return this.views.render('github-linked', { owner: linked.owner, suspended: linked.suspended });
  }

  @Patch('settings')
  @Route({
    operation: 'changeGitHubSettings',
    summary: 'Changes whether GitHub tokens may open every repository',
    answers: { 200: CHANGED_RULE_JSON },
    refusals: ['admin_required'],
  })
  async change(
    @Caller() session: VerifiedSession,
    @Body({ schema: GITHUB_TOKEN_RULE }) { all_repositories: isAllowed }: GitHubTokenRule,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<GitHubTokenRule & { readonly ended: { readonly github_tokens: number } }> {
    const ended = await this.links.allowAllRepositories(adminOf(session), isAllowed, origin);
    return { all_repositories: isAllowed, ended: { github_tokens: ended } };
  }

  @Delete('installations/:id')
  @Route({
    operation: 'removeGitHubInstallation',
    summary: 'Removes the link of a GitHub installation',
    answers: { 200: DELETED_JSON, 204: null },
    asks: { headers: PREFER },
    refusals: ['admin_required', 'not_found'],
  })
  async unlink(
    @Caller() session: VerifiedSession,
    @Param({ schema: INSTALLATION_ID }) { id }: { readonly id: number },
    @ClientOrigin() origin: AuditOrigin,
    @Headers('prefer') prefer: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const tokens = await this.links.unlink(adminOf(session), id, origin);
    sendDeleted(response, prefer, { ended: { github_tokens: tokens } });
  }
}
