import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import accepts from 'accepts';
import { CONFIG, type Config } from '#platform/config/config.js';
import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import type { Visitor } from '#platform/http/access/access-policy.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { RoutePolicies } from '#platform/http/routing/route-policies.js';
import type { ErrorFormat } from '#platform/http/routing/route-policy.js';
import { Views } from '#platform/http/views/views.service.js';
import { challengeOf } from './challenge.js';
import { oauthJson, problemJson, scimJson, type ErrorBody } from './error-formats.js';
import { logError, noteResponseError } from './error-log.js';

/**
 * The renderers of the error formats for programs. HTML, the format for people, is rendered by a
 * view.
 */
const RENDERERS = {
  problem: problemJson,
  oauth: oauthJson,
  scim: scimJson,
} satisfies Record<
  Exclude<ErrorFormat, 'html'>,
  (error: DomainError, baseUrl: string) => ErrorBody
>;

/** The link that an error page offers as the next step. */
export interface PageAction {
  readonly href: string;
  readonly text: string;
}

/** The facts of a failed request that decide which next step its error page offers. */
export interface FailedRequest {
  readonly method: string | undefined;
  readonly path: string;
  readonly baseUrl: string;
  /** True if the session of the request was verified by a security key. */
  readonly isVerified: boolean;
}

/**
 * Decides which next step an error page offers. The composition root provides it by {@link
 * PAGE_ACTION}.
 */
export type PageActionRule = (error: DomainError, request: FailedRequest) => PageAction;

/** The injection token of the {@link PageActionRule}. */
export const PAGE_ACTION = Symbol('rule of the step that an error page offers');

/** Renders an error in the format of its route, and logs it. */
@Injectable()
export class ErrorRenderer {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Pick<Config, 'http'>,
    @Inject(PAGE_ACTION) private readonly pageActionOf: PageActionRule,
    private readonly views: Views,
    private readonly routePolicies: RoutePolicies,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  /**
   * Responds to a request with an error. If a response has already begun, it is not changed. An
   * error of the client is not logged if the client has disconnected.
   *
   * @param visitor the user whose name the header of an error page shows
   */
  render(
    error: DomainError,
    request: IncomingMessage,
    response: ServerResponse,
    visitor?: Visitor,
  ): void {
    const isReceived = !response.headersSent && !response.destroyed;
    noteResponseError(response, error.code);
    if (isReceived || error.status >= 500) logError(error);
    if (!isReceived) return;
    const format = this.formatFor(request);
    const { type, content } =
      format === 'html'
        ? this.#html(error, request, visitor)
        : RENDERERS[format](error, this.#baseUrl);
    this.#setHeaders(error, request, response);
    response.statusCode = error.status;
    response.setHeader('Content-Type', type);
    response.setHeader('Content-Length', Buffer.byteLength(content));
    response.end(content);
  }

  /** Returns the problem document (RFC 9457) of an error outside of any request. */
  problem(error: DomainError): ErrorBody {
    return problemJson(error, this.#baseUrl);
  }

  /**
   * Returns the format of a request's errors. It is the format that the route declares, or else the
   * format that the header `Accept` prefers.
   */
  formatFor(request: IncomingMessage): ErrorFormat {
    const { errors } = this.routePolicies.of(request);
    if (errors !== 'negotiated') return errors;
    return accepts(request).type(['json', 'html']) === 'html' ? 'html' : 'problem';
  }

  /**
   * Sets the headers that an error has in every format: `Retry-After`, and `WWW-Authenticate` for a
   * 401 and for any other error with a challenge, such as insufficient_scope (403).
   */
  #setHeaders(error: DomainError, request: IncomingMessage, response: ServerResponse): void {
    if (error.status === 401 || error.challenge !== undefined) {
      const { protectedResource } = this.routePolicies.of(request);
      const metadata = protectedResource
        ? this.routePolicies.resourceMetadataOf(requestPath(request))
        : undefined;
      const address = metadata === undefined ? undefined : this.#baseUrl + metadata;
      response.setHeader('WWW-Authenticate', challengeOf(error, address));
    }
    if (error.retryAfter !== undefined) response.setHeader('Retry-After', String(error.retryAfter));
  }

  #html(error: DomainError, request: IncomingMessage, visitor: Visitor | undefined): ErrorBody {
    const { method } = request;
    const content = this.views.render('error', {
      title: CATALOGUE[error.code].title,
      detail: error.detail,
      action: this.pageActionOf(error, {
        method,
        path: requestPath(request),
        baseUrl: this.#baseUrl,
        isVerified: visitor?.verified === true,
      }),
      reference: interactionIdOf(request),
      person: visitor,
    });
    return { type: 'text/html; charset=utf-8', content };
  }
}
