import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { MOST_COUNTED_MEMBERS } from '#domain/member-records/member-figures.repository.js';
import { MemberRecords } from '#domain/member-records/member-records.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../shell/admission.js';
import { moment } from '../shell/moment.js';
import { person } from '../shell/person.js';
import { labelOf } from './event-words.js';

const NUMBER = new Intl.NumberFormat('en-GB');

/** Serves `/admin`, where the admins of an organization see what needs their attention. */
@Controller('admin')
@Route(PAGE_ROUTE)
export class AdminOverviewController {
  constructor(
    private readonly records: MemberRecords,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required */
  @Get()
  @Route({ summary: 'Shows the overview of the organization' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const { figures, events } = await this.records.overview(admitted.admin);
    const page = {
      person: person(admitted.session),
      members: counted(figures.members),
      withoutKey: counted(figures.withoutKey),
      withOneKey: counted(figures.withOneKey),
      expiringTokens: figures.expiringTokens,
      firstExpiry: figures.firstExpiry && moment(figures.firstExpiry),
      events: events.map((event) => ({
        ...event,
        at: moment(event.at),
        title: labelOf(event.type),
      })),
    };
    response.type('html').send(this.views.render('admin', page));
  }
}

/** Writes a number of members that was counted up to a limit: `1,204`, or `more than 10,000`. */
export function counted(members: number): string {
  if (members <= MOST_COUNTED_MEMBERS) return NUMBER.format(members);
  return `more than ${NUMBER.format(MOST_COUNTED_MEMBERS)}`;
}
