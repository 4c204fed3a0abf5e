import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { readCursor } from '#domain/admin/audit-search/audit-cursor.js';
import { AuditEvents } from '#domain/admin/audit-search/audit-events.service.js';
import { searchOf } from '#domain/admin/audit-search/audit-question.js';
import { PERIODS } from '#domain/admin/audit-search/periods.js';
import {
  MOST_QUESTIONS,
  SavedQuestions,
} from '#domain/admin/audit-search/saved-questions.service.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Clock } from '#platform/clock/clock.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { eventDays } from '../../shell/event-days.js';
import { showToAdmin } from '../../shell/show-page.js';
import {
  exportsOf,
  factsOf,
  hrefOf,
  questionLinks,
  readQuestion,
  summaryOf,
  TYPE_CHOICES,
  type AskedQuestion,
} from './audit-page.js';
import { lineOf } from '../event-line.js';
import { drawingOf } from './timeline-drawing.js';

const TEXT = z.string().max(1024).optional();
const QUERY = z.object({
  type: TEXT,
  person: TEXT,
  user: TEXT,
  email: TEXT,
  client: TEXT,
  target: TEXT,
  key: TEXT,
  ip: TEXT,
  request: TEXT,
  from: TEXT,
  to: TEXT,
  after: TEXT,
});
type PageQuery = z.output<typeof QUERY>;

const EVENT = z.object({ id: z.string().max(64) });

/** The number of events on a page. */
const PAGE_SIZE = 30;

/**
 * Serves `/admin/audit`, where admins search the audit log of their organization, and the page of
 * each event.
 */
@Controller('admin/audit')
@Route(PAGE_ROUTE)
export class AuditPageController {
  constructor(
    private readonly auditEvents: AuditEvents,
    private readonly savedQuestions: SavedQuestions,
    private readonly views: Views,
    private readonly clock: Clock,
  ) {}

  @Get()
  @Route({ summary: 'Shows the audit log of the organization' })
  async search(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: QUERY }) query: PageQuery,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'audit', async (admin) => {
      const asked = readQuestion(query);
      const saved = await this.savedQuestions.list(admin);
      return {
        ...asked,
        summary: summaryOf(asked.question),
        choices: TYPE_CHOICES,
        links: questionLinks(asked.question, saved, this.clock.now()),
        ...(await this.#answer(admin, asked, query.after)),
      };
    });
  }

  @Get('questions')
  @Route({ summary: 'Shows the saved questions to the audit log' })
  async questions(
    @Caller() caller: LiveSession | undefined,
    @Query({ schema: QUERY }) query: PageQuery,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'audit-questions', async (admin) => {
      const { question } = readQuestion(query);
      const saved = await this.savedQuestions.list(admin);
      return {
        question,
        summary: summaryOf(question),
        back: hrefOf(question),
        periods: PERIODS,
        hasDays: question.from !== undefined || question.to !== undefined,
        mayAdd: saved.length < MOST_QUESTIONS,
        most: MOST_QUESTIONS,
        saved: saved.map(({ id, name, filters: { period, ...filters } }) => ({
          id,
          name,
          summary: summaryOf(filters),
          period: period && PERIODS[period],
        })),
      };
    });
  }

  /**
   * Shows an event to an admin.
   * @throws DomainError not_found, also for an event of another organization
   */
  @Get(':id')
  @Route({ summary: 'Shows an event of the audit log' })
  async event(
    @Caller() caller: LiveSession | undefined,
    @Param({ schema: EVENT }) { id }: z.output<typeof EVENT>,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'audit-event', async (admin) => {
      const { event, sameRequest, members } = await this.auditEvents.describe(admin, id);
      return {
        event: factsOf(event, members),
        sameRequest: eventDays(sameRequest.map(lineOf)),
      };
    });
  }

  /**
   * Searches the events that match the filters of the form. An invalid filter starts no search. If
   * the search is too costly, `failure` is the text that the page shows above the form.
   */
  async #answer(admin: Admin, { question, problems }: AskedQuestion, after: string | undefined) {
    const place = after === undefined ? undefined : readCursor(after);
    if (Object.keys(problems).length > 0) return { result: undefined, failure: undefined };
    const search = searchOf(question);
    try {
      const [page, timeline, feedDelay] = await Promise.all([
        this.auditEvents.page(admin, { search, after: place, limit: PAGE_SIZE }),
        place ? undefined : this.auditEvents.timeline(admin, search),
        place ? 0 : this.auditEvents.feedDelay(admin),
      ]);
      const result = {
        days: eventDays(page.events.map(lineOf)),
        searchedTo: page.searchedTo?.toISOString(),
        feedDelay: Math.round(feedDelay / 1000),
        next: page.next === null ? undefined : hrefOf(question, page.next),
        first: place && hrefOf(question),
        exports: exportsOf(question),
        save: hrefOf(question).replace('/admin/audit', '/admin/audit/questions'),
        timeline: timeline && drawingOf(timeline),
      };
      return { result, failure: undefined };
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'too_many') throw error;
      return { result: undefined, failure: error.detail };
    }
  }
}
