import { Catch, Injectable, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { asDomainError } from './as-domain-error.js';
import { ErrorVoices } from './error-voices.service.js';

/** Errors of the pages: a page with a title, what went wrong, and a way back. */
@Injectable()
@Catch()
export class HtmlErrors implements ExceptionFilter {
  constructor(private readonly voices: ErrorVoices) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const response = http.getResponse<Response>();
    this.voices.answer(asDomainError(thrown), http.getRequest<Request>(), response, 'page');
  }
}
