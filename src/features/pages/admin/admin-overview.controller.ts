import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { MOST_COUNTED_MEMBERS } from '#domain/admin/members/member-figures.repository.js';
import { MemberRecords } from '#domain/admin/members/member-records.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { eventDays } from '../shell/event-days.js';
import { moment } from '../shell/moment.js';
import { showToAdmin } from '../shell/show-page.js';
import { sentenceOf } from './event-words.js';

const NUMBER = new Intl.NumberFormat('en-GB');

/** Serves `/admin`, where the admins of an organization see what needs their attention. */
@Controller('admin')
@Route(PAGE_ROUTE)
export class AdminOverviewController {
  constructor(
    private readonly records: MemberRecords,
    private readonly views: Views,
  ) {}

  /**
   * Shows an admin how many members have no key or one key, the tokens that expire soon, and the
   * latest events.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the overview of the organization' })
  async show(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'admin', async (admin) => {
      const { figures, events } = await this.records.overview(admin);
      return {
        members: counted(figures.members),
        withoutKey: counted(figures.withoutKey),
        withOneKey: counted(figures.withOneKey),
        expiringTokens: figures.expiringTokens,
        firstExpiry: figures.firstExpiry && moment(figures.firstExpiry),
        expiringApiTokens: figures.apiTokens.count,
        firstApiExpiry: figures.apiTokens.first && moment(figures.apiTokens.first),
        days: eventDays(
          events.map((event) => ({
            type: event.type,
            at: moment(event.at),
            sentence: sentenceOf(event),
            facts: [],
            href: `/admin/audit/${event.id}`,
          })),
        ),
      };
    });
  }
}

/**
 * Returns in words a number of members that was counted up to a limit: `1,204`, or `more than
 * 10,000`.
 */
export function counted(members: number): string {
  if (members <= MOST_COUNTED_MEMBERS) return NUMBER.format(members);
  return `more than ${NUMBER.format(MOST_COUNTED_MEMBERS)}`;
}
