import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { NIL } from 'uuid';
import { Members } from '#domain/directory/members.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../../shell/admission.js';
import { person } from '../../shell/person.js';

/** Serves `/admin/members`, where admins find the members of their organization. */
@Controller('admin/members')
@Route(PAGE_ROUTE)
export class MembersPageController {
  constructor(
    private readonly members: Members,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required */
  @Get()
  @Route({ summary: 'Lists the members of the organization' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const { members } = await this.members.list(admitted.admin, NIL, 50);
    const page = { person: person(admitted.session), members };
    response.type('html').send(this.views.render('members', page));
  }
}
