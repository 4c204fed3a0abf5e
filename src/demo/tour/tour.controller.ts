import { Controller, Get, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { entrance, ENTRANCES, signInLink } from '@svc/demo/entrances';
import { READY, READY_PEOPLE } from '@svc/demo/people';
import { Tour, type LiveReport, type ReadyTour } from '@svc/demo/tour';
import type { LiveSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { Views } from '#platform/http/views/views.service.js';
import { Route } from '#platform/http/routing/route.js';
import { person } from '../../features/pages/shell/person.js';

/**
 * The rules of the tour's routes that change something: only pages of the tour may send such
 * requests.
 */
const WRITE = {
  tier: 'general',
  errors: 'problem',
  auth: { session: 'none', origin: 'strict' },
} as const;

/** Serves `/demo`: the first page, the tours, and the page on which a person leaves the company. */
@Controller('demo')
@Route({
  tier: 'unlimited',
  audience: 'ui',
  errors: 'html',
  auth: { session: 'optional', origin: 'ui' },
})
export class TourController {
  constructor(
    private readonly views: Views,
    private readonly tour: Tour,
  ) {}

  @Get()
  @Route({ summary: 'Shows the first page of the demo' })
  start(@Caller() session: LiveSession | undefined, @Res() response: Response): void {
    const { state } = this.tour;
    const people = READY_PEOPLE.map((one) => ({
      ...one,
      href: typeof state === 'string' ? '/login' : signInLink(state, one, '/account').href,
    }));
    this.#show(response, 'tour', session, { entrances: ENTRANCES, people });
  }

  @Get('leaver')
  @Route({ summary: 'Shows the page on which a person leaves' })
  async leaver(@Caller() session: LiveSession | undefined, @Res() response: Response) {
    const { state } = this.tour;
    const live = typeof state === 'string' ? undefined : await this.tour.live(state);
    this.#show(response, 'tour-leaver', session, { live, leaver: READY.leaver });
  }

  @Get('live')
  @Route({ errors: 'problem', summary: 'Reports the access of the leaver and the newest events' })
  live(): Promise<LiveReport> {
    return this.tour.live(this.#ready());
  }

  /**
   * Deletes, by SCIM, the person who leaves the company in the tour. The demo's own token
   * authorizes it.
   */
  @Post('leaver/leave')
  @Route({ ...WRITE, summary: 'Deletes the leaver by SCIM' })
  @HttpCode(200)
  async leave(): Promise<LiveReport> {
    const ready = this.#ready();
    await ready.workday.end();
    return this.tour.live(ready);
  }

  @Post('leaver/return')
  @Route({ ...WRITE, summary: 'Creates the leaver again, with a new key' })
  @HttpCode(200)
  async comeBack(): Promise<LiveReport> {
    const ready = this.#ready();
    await ready.workday.comeBack();
    return this.tour.live(ready);
  }

  @Get(':entrance')
  @Route({ summary: 'Shows the tour of an engineer, an admin or an operator' })
  show(
    @Param('entrance') slug: string,
    @Caller() session: LiveSession | undefined,
    @Res() response: Response,
  ): void {
    const { state } = this.tour;
    if (!ENTRANCES.some((one) => one.slug === slug)) {
      throw new DomainError('not_found', 'There is nothing here.');
    }
    const found = typeof state === 'string' ? undefined : entrance(slug, state);
    this.#show(response, 'tour-entrance', session, { slug, entrance: found });
  }

  #ready(): ReadyTour {
    const { state } = this.tour;
    if (typeof state === 'string') throw new DomainError('unavailable', state);
    return state;
  }

  #show(response: Response, view: string, session: LiveSession | undefined, data: object): void {
    const { state } = this.tour;
    const problem = typeof state === 'string' ? state : undefined;
    const html = this.views.render(view, { ...data, problem, person: person(session) });
    response.type('html').send(html);
  }
}
