import { Body, Controller, Get, HttpCode, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { GitHubApp } from '#domain/github/app/github-app.service.js';
import { GitHubTokens } from '#domain/github/tokens/github-tokens.service.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import { deniedSession } from '#domain/sessions/access-token.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import {
  GITHUB_TOKEN_JSON,
  GITHUB_TOKEN_REQUEST,
  STATUS_JSON,
  installationJson,
  tokenJson,
  type GitHubTokenBody,
  type GitHubTokenJson,
  type StatusJson,
} from './github.schemas.js';

/**
 * `/v1/credentials/github`: issues tokens of the GitHub App for the repositories of the caller's
 * organization.
 */
@Controller('v1/credentials/github')
@Route({
  tier: 'general',
  body: { max: 8 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: USER_ACCESS,
})
export class GitHubController {
  constructor(
    private readonly tokens: GitHubTokens,
    private readonly app: GitHubApp,
    private readonly metrics: ServiceMetrics,
  ) {}

  @Post('token')
  @Route({
    tier: 'issuance',
    operation: 'issueGitHubToken',
    summary: 'Issues a GitHub installation token',
    answers: { 200: GITHUB_TOKEN_JSON },
    refusals: [
      'issuance_refused',
      'account_inactive',
      'not_assigned',
      'browser_required',
      'insufficient_user_authentication',
      'not_found',
      'permission_not_allowed',
      'github_suspended',
      'github_unavailable',
      'github_not_configured',
    ],
  })
  @HttpCode(200)
  async issue(
    @Caller() session: VerifiedSession,
    @Body({ schema: GITHUB_TOKEN_REQUEST }) body: GitHubTokenBody,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<GitHubTokenJson> {
    const { id: userId } = session.user;
    const holder = {
      userId,
      orgId: orgIdOf(session),
      sessionId: session.id,
      denied: deniedSession(session),
    };
    const issued = await this.tokens.issue(holder, body, origin);
    this.metrics.countIssued('github');
    return tokenJson(issued);
  }

  @Get('status')
  @Route({
    operation: 'getGitHubStatus',
    summary: 'Lists the GitHub installations that the caller reaches',
    answers: { 200: STATUS_JSON },
    refusals: ['issuance_refused'],
  })
  async status(@Caller() session: VerifiedSession): Promise<StatusJson> {
    const { configured } = this.app;
    const orgId = orgIdOf(session);
    const holder = { orgId, userId: session.user.id, sessionId: session.id };
    const installations = await this.tokens.listReached(holder);
    return {
      configured: configured !== undefined,
      web_url: configured?.webUrl ?? null,
      app: configured?.appName ?? null,
      all_repositories: await this.tokens.allowsAll(orgId),
      installations: installations.map(installationJson),
    };
  }
}

/**
 * Returns the organization of the user of a session.
 * @throws DomainError issuance_refused for a user without an organization
 */
function orgIdOf({ user }: VerifiedSession): string {
  if (user.orgId !== null) return user.orgId;
  const detail = 'GitHub tokens are for members of an organization.';
  throw new DomainError('issuance_refused', detail);
}
