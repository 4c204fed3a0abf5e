import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Response } from 'express';
import type { DomainError } from '#platform/errors/domain-error.js';
import { AccessPolicy, type Visitor } from '#platform/http/access/access-policy.js';
import type { AdmittedRequest } from '#platform/http/access/caller.js';
import { presentedToken } from '#platform/http/access/presented-token.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { refusalBefore } from '#platform/http/access/refusal-before.js';
import { asDomainError } from './as-domain-error.js';
import { ErrorRenderer } from './error-renderer.service.js';

/** Renders every error that a guard or a handler throws. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(
    private readonly errorRenderer: ErrorRenderer,
    private readonly accessPolicy: AccessPolicy,
    private readonly sessionCookies: SessionCookies,
  ) {}

  async catch(thrown: unknown, host: ArgumentsHost): Promise<void> {
    const http = host.switchToHttp();
    const request = http.getRequest<AdmittedRequest>();
    const error = asDomainError(await refusalBefore(thrown, request));
    const visitor = this.#showsVisitor(error, request) ? await this.#visitorOf(request) : undefined;
    this.errorRenderer.render(error, request, http.getResponse<Response>(), visitor);
  }

  /**
   * Returns true if the error page shows the user's name. For a rate-limited request or a failure
   * of the service, no session is looked up, to spare the database.
   */
  #showsVisitor({ code, status }: DomainError, request: AdmittedRequest): boolean {
    const isLookedUp = status < 500 && code !== 'rate_limited';
    return isLookedUp && this.errorRenderer.formatFor(request) === 'html';
  }

  /**
   * Returns the user of a request for the header of an error page.
   * @returns undefined if there is no session, or if it cannot be looked up
   */
  async #visitorOf(request: AdmittedRequest): Promise<Visitor | undefined> {
    try {
      const session = request.session ?? (await this.#find(request));
      return session === undefined ? undefined : this.accessPolicy.visitorOf(session);
    } catch {
      return undefined;
    }
  }

  #find(request: AdmittedRequest): Promise<unknown> {
    const presented = presentedToken(request, this.sessionCookies.token(request));
    return this.accessPolicy.find(presented, { session: 'optional', origin: 'any' });
  }
}
