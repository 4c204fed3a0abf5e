import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Members } from '#domain/directory/members.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../../shell/admission.js';
import { person } from '../../shell/person.js';

/** Serves `/admin/members/{id}`, where admins see a member and act on the account. */
@Controller('admin/members')
@Route(PAGE_ROUTE)
export class MemberPageController {
  constructor(
    private readonly members: Members,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required; not_found for an id that is not a member of the organization */
  @Get(':id')
  @Route({ summary: 'Shows a member of the organization' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const member = await this.members.show(admitted.admin, id);
    const isSelf = member.id === admitted.admin.id;
    const page = { person: person(admitted.session), member, isSelf };
    response.type('html').send(this.views.render('member', page));
  }
}
