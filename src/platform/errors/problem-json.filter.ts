import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { HtmlErrors } from './html.filter.js';
import { asDomainError } from './as-domain-error.js';
import { logError } from './error-log.js';
import { sendProblem } from './problem-json.js';

/** The API's own paths, which answer JSON whatever a client says it accepts. */
const API_PATH = /^\/(?:v1|api|oauth|scim)(?:\/|$)/i;

/**
 * Global: every error no controller's own filter took, as a problem document; a browser that asks for a page that
 * does not exist gets a page.
 */
@Catch()
export class ProblemJsonFilter implements ExceptionFilter {
  constructor(private readonly html: HtmlErrors) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const error = asDomainError(thrown);
    if (!API_PATH.test(request.path) && request.accepts(['json', 'html']) === 'html') {
      this.html.answer(error, response);
      return;
    }
    logError(error);
    if (!response.headersSent) sendProblem(response, error);
  }
}
