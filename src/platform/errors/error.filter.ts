import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { asDomainError } from './as-domain-error.js';
import { ErrorVoices } from './error-voices.service.js';

/** Global: every error of a route, in the voice of its path. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly voices: ErrorVoices) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const response = http.getResponse<Response>();
    this.voices.answer(asDomainError(thrown), http.getRequest<Request>(), response);
  }
}
