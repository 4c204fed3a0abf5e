import { Catch, Injectable, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Response } from 'express';
import { Views } from '#platform/http/views.service.js';
import { asDomainError } from './as-domain-error.js';
import { CATALOGUE } from './catalogue.js';
import type { DomainError } from './domain-error.js';
import { logError } from './error-log.js';
import { setErrorHeaders } from './problem-json.js';

/** Errors of the pages: a page with a title, what went wrong, and a way back. */
@Injectable()
@Catch()
export class HtmlErrors implements ExceptionFilter {
  constructor(private readonly views: Views) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    this.answer(asDomainError(thrown), host.switchToHttp().getResponse<Response>());
  }

  /** Answers an error with its page. */
  answer(error: DomainError, response: Response): void {
    logError(error);
    if (response.headersSent) return;
    setErrorHeaders(response, error);
    const { title } = CATALOGUE[error.code];
    response
      .status(error.status)
      .type('html')
      .send(this.views.render('error', { title, detail: error.detail }));
  }
}
