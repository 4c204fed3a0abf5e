import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { LiveSession } from '#domain/sessions/session.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { sendEncoded } from '#platform/http/request/encoded-document.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { person } from '../../shell/person.js';
import { Manual } from './manual.js';

/** The query of the page that searches the documents. Without `q` the search finds nothing. */
const SEARCH_QUERY = z.object({
  q: z.string().max(200).default('').describe('The words to search for'),
});

/** The segments of the path of a page below `/docs`. */
type Segments = Readonly<Record<string, string>>;

/** Serves the documents of `docs/` below `/docs`, with a menu and a search. */
@Controller('docs')
@Route(PAGE_ROUTE)
export class ManualController {
  readonly #manual = new Manual();

  constructor(private readonly views: Views) {}

  @Get('search')
  @Route({ summary: 'Searches the documentation' })
  search(
    @Caller() session: LiveSession | undefined,
    @Query({ schema: SEARCH_QUERY }) { q }: z.output<typeof SEARCH_QUERY>,
    @Res() response: Response,
  ): void {
    const found = this.#manual.search(q);
    this.#show(response, session, 'manual-search', { q, found });
  }

  @Get('files/:name')
  @Route({
    tier: 'unlimited',
    errors: 'negotiated',
    auth: PUBLIC,
    summary: 'Sends an image or another file of the documentation',
  })
  file(@Param('name') name: string, @Req() request: Request, @Res() response: Response): void {
    const file = this.#manual.file(name);
    if (!file) throw notFound();
    sendEncoded(request, response, file, file.type);
  }

  @Get(['', ':page', ':folder/:page', ':folder/:subfolder/:page'])
  @Route({ summary: 'Shows a page of the documentation' })
  async page(
    @Caller() session: LiveSession | undefined,
    @Param() { folder, subfolder, page: name }: Segments,
    @Res() response: Response,
  ): Promise<void> {
    const address = ['/docs', folder, subfolder, name].filter(Boolean).join('/');
    const page = await this.#manual.page(address);
    if (!page) throw notFound();
    this.#show(response, session, 'manual-page', { address, ...page });
  }

  #show(response: Response, session: LiveSession | undefined, view: string, data: object): void {
    const menu = this.#manual.menu();
    const page = { address: '', parts: [], q: '', ...data, menu, person: person(session) };
    response.type('html').send(this.views.render(view, page));
  }
}

function notFound(): DomainError {
  return new DomainError('not_found', 'There is nothing here.');
}
