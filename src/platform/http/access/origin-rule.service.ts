import { Inject, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { SessionCookies } from './session-cookies.service.js';
import type { OriginRule as Rule } from '#platform/http/routing/route-policy.js';

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Request-forgery protection: a write that a browser's cookies may decide must come from a page of ours, or, on UI
 * routes, of an origin in SVC_CORS_ORIGINS. A request with a token in its header and no cookie is no browser's.
 */
@Injectable()
export class OriginRule {
  readonly #own: string;
  readonly #ui: ReadonlySet<string>;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly cookies: SessionCookies,
  ) {
    this.#own = config.http.baseUrl;
    this.#ui = new Set([config.http.baseUrl, ...config.http.corsOrigins]);
  }

  /** @throws DomainError invalid_origin when the request's Origin may not write here */
  check(request: Request, rule: Rule): void {
    if (rule === 'any' || SAFE_METHODS.has(request.method)) return;
    const { origin, authorization } = request.headers;
    // Without the cookie nothing of a browser's is at stake; the pages' own calls come from our pages even so.
    const hasCookie = this.cookies.token(request) !== undefined;
    const isBrowsers = hasCookie || (rule === 'ui' && authorization === undefined);
    if (rule !== 'strict' && !isBrowsers) return;
    const allowed =
      origin !== undefined && (rule === 'ui' ? this.#ui.has(origin) : origin === this.#own);
    if (!allowed) {
      throw new DomainError('invalid_origin', 'This write must come from a page of this service.');
    }
  }
}
