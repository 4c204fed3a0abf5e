import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { GitHubApp } from '#domain/github-app/github-app.service.js';
import { GitHubTokens } from '#domain/github-tokens/github-tokens.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { person } from '../../shell/person.js';

/** Serves `/admin/github`: the installations of the GitHub App that an organization linked. */
@Controller('admin/github')
@Route(PAGE_ROUTE)
export class GitHubPageController {
  constructor(
    private readonly app: GitHubApp,
    private readonly tokens: GitHubTokens,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required */
  @Get()
  @Route({ summary: 'Shows the GitHub installations of the organization' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const { orgId } = admitted.admin;
    const [installations, live] = await Promise.all([
      this.tokens.list(orgId),
      this.tokens.countLive(orgId),
    ]);
    const { configured } = this.app;
    const page = {
      person: person(admitted.session),
      app: configured && { name: configured.appName, webUrl: configured.webUrl },
      installations: installations.map((one) => ({
        ...one,
        linked: moment(one.linkedAt),
        tokens: live.get(one.id) ?? 0,
      })),
    };
    response.type('html').send(this.views.render('org-github', page));
  }
}
