import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { asDomainError } from './as-domain-error.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import { ErrorVoices } from './error-renderer.service.js';
import { PageVisitors } from '#platform/http/access/page-visitors.service.js';

/** Global: every error of a route, in the voice of its path. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(
    private readonly voices: ErrorVoices,
    private readonly visitors: PageVisitors,
  ) {}

  async catch(thrown: unknown, host: ArgumentsHost): Promise<void> {
    const http = host.switchToHttp();
    const request = http.getRequest<Request>();
    const error = asDomainError(thrown);
    const visitor = this.#looksUp(error, request) ? await this.visitors.of(request) : undefined;
    this.voices.answer(error, request, http.getResponse<Response>(), visitor);
  }

  /** A page has the header of its person. A refused flood and a database that is away look nothing up. */
  #looksUp({ code, status }: DomainError, request: Request): boolean {
    return status < 500 && code !== 'rate_limited' && this.voices.isPage(request);
  }
}
