import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { readCookie, readCookieValues, setCookie } from '#platform/http/request/cookies.js';

/** Holds the first-party access token. */
const SESSION = 'svc_session';
/** Ties a sign-in or a login to the browser that began it, before there is a session. */
const BROWSER = 'svc_browser';
/** A browser takes a cookie of this prefix from this very host alone, over https (RFC 6265bis §4.1.3.2). */
const HOST_PREFIX = '__Host-';

/** Says that a security key was used in this browser: the same word in every browser. */
const RETURNING = 'svc_returning';
/** 400 days, the longest that browsers keep a cookie (RFC 6265bis §5.5). */
const RETURNING_SECONDS = 400 * 86_400;

const BROWSER_SECRET = /^[\w-]{43}$/; // 256 bits, base64url

/**
 * The cookies we set: HttpOnly, SameSite=Lax, Path=/, and Secure whenever the base URL is https.
 *
 * Under https the session has two cookies of one value. A sibling host can plant `svc_session`, and cannot plant
 * `__Host-svc_session`: where that one arrives it alone is read. `svc_session` alone is for programs, which send no
 * `Sec-Fetch-Site`; every browser sends that header over https, and its `svc_session` alone opens nothing.
 */
@Injectable()
export class SessionCookies {
  readonly #secure: boolean;
  readonly #names: readonly string[];
  readonly #browser: string;

  constructor(@Inject(CONFIG) config: Config) {
    this.#secure = config.http.baseUrl.startsWith('https:');
    this.#names = this.#secure ? [HOST_PREFIX + SESSION, SESSION] : [SESSION];
    this.#browser = this.#secure ? HOST_PREFIX + BROWSER : BROWSER;
  }

  /** The session's token, as the request carries it; undefined where there is none, or two that differ. */
  token(request: Request): string | undefined {
    if (!this.#secure) return readCookie(request, SESSION);
    const ofHost = readCookieValues(request, HOST_PREFIX + SESSION);
    if (ofHost.length > 0) return ofHost.length === 1 ? ofHost[0] : undefined;
    const isBrowsers = request.headers['sec-fetch-site'] !== undefined;
    return isBrowsers ? undefined : readCookie(request, SESSION);
  }

  /** Every token that came under either name, read or not: a logout leaves none of them alive. */
  everyToken(request: Request): string[] {
    return [...new Set(this.#names.flatMap((name) => readCookieValues(request, name)))];
  }

  /** Hands a session's token to the browser, for as long as the session lasts. */
  set(response: Response, session: { readonly token: string; readonly expiresAt: Date }): void {
    const maxAgeSeconds = Math.floor((session.expiresAt.getTime() - Date.now()) / 1000);
    this.#setAll(response, session.token, maxAgeSeconds);
  }

  /** Takes the token away, and from the browser's cache the pages that were shown with it (Clear Site Data §3.1). */
  clear(response: Response): void {
    this.#setAll(response, '', 0);
    response.setHeader('Clear-Site-Data', '"cache"');
  }

  #setAll(response: Response, token: string, maxAgeSeconds: number): void {
    for (const name of this.#names) {
      setCookie(response, name, token, { secure: this.#secure, maxAgeSeconds });
    }
  }

  /** Remembers, without anything that tells browsers apart, that a security key was used in this one. */
  rememberKeyUse(response: Response): void {
    const options = { secure: this.#secure, maxAgeSeconds: RETURNING_SECONDS };
    setCookie(response, RETURNING, '1', options);
  }

  /** Whether a security key was used in this browser before. It is a hint for the order of a page, and no proof. */
  hasUsedKey(request: Request): boolean {
    return readCookie(request, RETURNING) === '1';
  }

  /** The browser's secret, minted on first need: 256 random bits that only this browser presents. */
  ensureBrowserSecret(request: Request, response: Response): string {
    const known = this.browserSecret(request);
    if (known !== undefined) return known;
    const secret = randomBytes(32).toString('base64url');
    setCookie(response, this.#browser, secret, { secure: this.#secure });
    return secret;
  }

  /** The browser's secret, if it has one. */
  browserSecret(request: Request): string | undefined {
    const value = readCookie(request, this.#browser);
    return value !== undefined && BROWSER_SECRET.test(value) ? value : undefined;
  }
}
