import type { IncomingMessage, ServerResponse } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import accepts from 'accepts';
import { CONFIG, type Config } from '#platform/config/config.js';
import type { Visitor } from '#platform/http/access/access-policy.js';
import { interactionIdOf } from '#platform/http/request/interaction-id.js';
import { requestPath } from '#platform/http/contract/request-path.js';
import { Views } from '#platform/http/views/views.service.js';
import { noteAnsweredError } from './answered-error.js';
import { CATALOGUE } from '#platform/errors/catalogue.js';
import { challengeOf } from './challenge.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorBody } from './error-body.js';
import { logError } from './error-log.js';
import { oauthJson } from './oauth-json.js';
import { pageActionOf } from './page-action.js';
import { problemJson } from './problem-json.js';
import { scimJson } from './scim-json.js';
import { VOICES, type Voice } from './error-format.js';

/** How the programs' voices write an error. */
const DIALECTS = {
  problem: problemJson,
  oauth: oauthJson,
  scim: scimJson,
} satisfies Record<Exclude<Voice, 'page'>, (error: DomainError) => ErrorBody>;

/** Tells an error, in the voice of the place where it happened, and writes its line in the log. */
@Injectable()
export class ErrorVoices {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Pick<Config, 'http'>,
    private readonly views: Views,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  /**
   * Answers a request with an error. An answer that has begun already is left alone, and a client's error that there is
   * nobody left to tell is not worth a line.
   *
   * @param visitor the person whose header a page shows
   */
  answer(
    error: DomainError,
    request: IncomingMessage,
    response: ServerResponse,
    visitor?: Visitor,
  ): void {
    const isTold = !response.headersSent && !response.destroyed;
    noteAnsweredError(response, error.code);
    if (isTold || error.status >= 500) logError(error);
    if (!isTold) return;
    const voice = voiceOf(request);
    const { type, content } =
      voice === 'page' ? this.#page(error, request, visitor) : DIALECTS[voice](error);
    this.#setHeaders(response, error, requestPath(request));
    response.statusCode = error.status;
    response.setHeader('Content-Type', type);
    response.setHeader('Content-Length', Buffer.byteLength(content));
    response.end(content);
  }

  /** Whether the errors of a request are told on a page. */
  isPage(request: IncomingMessage): boolean {
    return voiceOf(request) === 'page';
  }

  /** The headers an error owes its client in every voice: the one challenge of a 401, and how long to wait. */
  #setHeaders(response: ServerResponse, error: DomainError, path: string): void {
    if (error.status === 401 || error.challenge !== undefined) {
      response.setHeader('WWW-Authenticate', challengeOf(error, path, this.#baseUrl));
    }
    if (error.retryAfter !== undefined) response.setHeader('Retry-After', String(error.retryAfter));
  }

  #page(error: DomainError, request: IncomingMessage, visitor: Visitor | undefined): ErrorBody {
    const { method } = request;
    const content = this.views.render('error', {
      title: CATALOGUE[error.code].title,
      detail: error.detail,
      action: pageActionOf(error, {
        method,
        baseUrl: this.#baseUrl,
        isVerified: visitor?.verified === true,
      }),
      reference: interactionIdOf(request),
      person: visitor,
    });
    return { type: 'text/html; charset=utf-8', content };
  }
}

function voiceOf(request: IncomingMessage): Voice {
  const voice = VOICES.of(requestPath(request));
  if (voice) return voice;
  return accepts(request).type(['json', 'html']) === 'html' ? 'page' : 'problem';
}
