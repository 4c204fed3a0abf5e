import { Controller, Get, Inject, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Caller } from '#platform/http/access/caller.js';
import { ApiDocument } from '#platform/http/openapi/api-document.service.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../shell/admission.js';
import { person } from '../shell/person.js';
import { groupPage, groupsOf } from './api-page.js';
import { errorList, errorPageOf } from './error-page.js';

/** Serves `/docs/api` and `/errors`, which explain the API and its errors to developers. */
@Controller()
@Route(PAGE_ROUTE)
export class DocumentsController {
  constructor(
    private readonly apiDocument: ApiDocument,
    private readonly views: Views,
    @Inject(CONFIG) private readonly config: Pick<Config, 'http'>,
  ) {}

  @Get('docs/api')
  @Route({ summary: 'Shows the documentation of the API' })
  async index(
    @Caller() session: LiveSession | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const { document } = await this.apiDocument.served();
    this.#show(response, session, 'api-index', { groups: groupsOf(document) });
  }

  @Get('docs/api/:group')
  @Route({ summary: 'Shows the documentation of a group of routes' })
  async group(
    @Caller() session: LiveSession | undefined,
    @Param('group') slug: string,
    @Res() response: Response,
  ): Promise<void> {
    const { document } = await this.apiDocument.served();
    const group = groupPage(document, slug, this.config.http.baseUrl);
    if (!group) throw notFound();
    this.#show(response, session, 'api-group', { group });
  }

  @Get('errors')
  @Route({ summary: 'Lists the codes of errors' })
  errors(@Caller() session: LiveSession | undefined, @Res() response: Response): void {
    this.#show(response, session, 'error-index', { errors: errorList() });
  }

  @Get('errors/:code')
  @Route({ summary: 'Explains a code of an error' })
  async error(
    @Caller() session: LiveSession | undefined,
    @Param('code') code: string,
    @Res() response: Response,
  ): Promise<void> {
    const { document } = await this.apiDocument.served();
    const error = errorPageOf(code, document);
    if (!error) throw notFound();
    this.#show(response, session, 'error-code', { error });
  }

  #show(response: Response, session: LiveSession | undefined, view: string, data: object): void {
    response.type('html').send(this.views.render(view, { ...data, person: person(session) }));
  }
}

function notFound(): DomainError {
  return new DomainError('not_found', 'There is nothing here.');
}
