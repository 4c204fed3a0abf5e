import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { GitHubApp } from '#domain/github/app/github-app.service.js';
import { GitHubTokens } from '#domain/github/tokens/github-tokens.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';

/** Serves `/admin/github`: the installations of the GitHub App that an organization linked. */
@Controller('admin/github')
@Route(PAGE_ROUTE)
export class GitHubPageController {
  constructor(
    private readonly app: GitHubApp,
    private readonly tokens: GitHubTokens,
    private readonly views: Views,
  ) {}

  /**
   * Shows the installations to an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the GitHub installations of the organization' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-github', async (admin) => {
      const { orgId } = admin;
      const [installations, live, allowsAll] = await Promise.all([
        this.tokens.list(orgId),
        this.tokens.countLive(orgId),
        this.tokens.allowsAll(orgId),
      ]);
      const { configured } = this.app;
      return {
        allowsAll,
        app: configured && { name: configured.appName, webUrl: configured.webUrl },
        installations: installations.map((one) => ({
          ...one,
          linked: moment(one.linkedAt),
          tokens: live.get(one.id) ?? 0,
        })),
      };
    });
  }
}
