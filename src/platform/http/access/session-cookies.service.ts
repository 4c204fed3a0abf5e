import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { systemClock } from '#platform/clock/clock.js';
import { systemRandom } from '#platform/clock/random.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { readCookie, readCookieValues, setCookie } from './cookies.js';

/** The name of the cookie with the access token of a session. */
const SESSION = 'svc_session';
/**
 * The name of the cookie that recognizes the browser in which a login began, at an identity
 * provider or with a security key. It is needed because no session exists yet at that time.
 */
const BROWSER = 'svc_browser';
/**
 * The prefix of the names of cookies that a browser accepts only from exactly this host, over https
 * (RFC 6265bis §4.1.3.2).
 */
const HOST_PREFIX = '__Host-';

/**
 * The name of the cookie that says that a security key was used in this browser. Its value is the
 * same in every browser, so that it identifies none.
 */
const RETURNING = 'svc_returning';
/**
 * The name of a cookie for the page `/account`. It says which hint of the page the user of this
 * browser has dismissed. The browser sends it only to that page and its forms.
 */
const DISMISSED = { name: 'svc_dismissed', path: '/account' } as const;
/**
 * The lifetime of the cookies {@link RETURNING} and {@link DISMISSED} in seconds: 400 days, because
 * browsers keep no cookie for longer (RFC 6265bis §5.5).
 */
const RETURNING_SECONDS = 400 * 86_400;

/**
 * The start of the name of each cookie that has the encrypted state of a sign-in at an identity
 * provider. Each sign-in has its own cookie, so that sign-ins in two tabs do not disturb each
 * other.
 */
const SIGN_IN = 'svc_sign_in_';

const BROWSER_SECRET = /^[\w-]{43}$/; // 256 bits, base64url

/**
 * Sets and reads the cookies of the service: HttpOnly, SameSite=Lax, Secure if the base URL is
 * https, and Path=/ except for the cookies of a hint and of a sign-in at an identity provider.
 *
 * Under https a session has two cookies of the same value. Another host of the same domain can
 * plant `svc_session`, but not `__Host-svc_session`; if the request has `__Host-svc_session`, that
 * cookie alone is read. `svc_session` alone is for programs, which send no `Sec-Fetch-Site`. Every
 * browser sends that header over https, and then `svc_session` alone is ignored.
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

  /**
   * Returns the session token of a request, from the one cookie that counts (see the class). It is
   * undefined if that cookie is missing, or is sent twice with different values.
   */
  token(request: Request): string | undefined {
    if (!this.#secure) return readCookie(request, SESSION);
    const ofHost = readCookieValues(request, HOST_PREFIX + SESSION);
    if (ofHost.length > 0) return ofHost.length === 1 ? ofHost[0] : undefined;
    const isBrowsers = request.headers['sec-fetch-site'] !== undefined;
    return isBrowsers ? undefined : readCookie(request, SESSION);
  }

  /**
   * Returns every session token of a request, from the cookies of both names. A logout ends all
   * these sessions.
   */
  everyToken(request: Request): string[] {
    return [...new Set(this.#names.flatMap((name) => readCookieValues(request, name)))];
  }

  /** Sets the cookies of a session, which last as long as the session. */
  set(response: Response, session: { readonly token: string; readonly expiresAt: Date }): void {
    const maxAgeSeconds = Math.floor(
      (session.expiresAt.getTime() - systemClock.milliseconds()) / 1000,
    );
    this.#setAll(response, session.token, maxAgeSeconds);
  }

  /**
   * Removes the cookies of the session, and the pages of the service in the browser's cache (Clear
   * Site Data §3.1), because they show the user's data.
   */
  clear(response: Response): void {
    this.#setAll(response, '', 0);
    response.setHeader('Clear-Site-Data', '"cache"');
  }

  #setAll(response: Response, token: string, maxAgeSeconds: number): void {
    for (const name of this.#names) {
      setCookie(response, name, token, { secure: this.#secure, maxAgeSeconds });
    }
  }

  /**
   * Sets the cookie that says that a security key was used in this browser. It does not identify
   * the browser.
   */
  rememberKeyUse(response: Response): void {
    const options = { secure: this.#secure, maxAgeSeconds: RETURNING_SECONDS };
    setCookie(response, RETURNING, '1', options);
  }

  /**
   * Returns true if a security key was used in this browser before. A page uses it to choose what
   * it shows first. It proves nothing, because a client can send any cookie.
   */
  hasUsedKey(request: Request): boolean {
    return readCookie(request, RETURNING) === '1';
  }

  /** Sets the cookie that says which hint the user of this browser has dismissed. */
  rememberDismissed(response: Response, hint: string): void {
    const { name, path } = DISMISSED;
    const options = { secure: this.#secure, maxAgeSeconds: RETURNING_SECONDS, path };
    setCookie(response, name, hint, options);
  }

  /**
   * Returns true if the user of this browser has dismissed a hint. It proves nothing, because a
   * client can send any cookie.
   */
  hasDismissed(request: Request, hint: string): boolean {
    return readCookie(request, DISMISSED.name) === hint;
  }

  /**
   * Returns the secret of the browser: 256 random bits that only this browser has. If the browser
   * has no secret yet, a new secret is set as a cookie.
   */
  ensureBrowserSecret(request: Request, response: Response): string {
    const known = this.browserSecret(request);
    if (known !== undefined) return known;
    const secret = systemRandom.token();
    setCookie(response, this.#browser, secret, { secure: this.#secure });
    return secret;
  }

  /** Returns the browser's secret; undefined if the browser has none. */
  browserSecret(request: Request): string | undefined {
    const value = readCookie(request, this.#browser);
    return value !== undefined && BROWSER_SECRET.test(value) ? value : undefined;
  }

  /**
   * Stores the encrypted state of a sign-in at an identity provider in a cookie, which the browser
   * sends only to the paths below `path`.
   */
  keepSignIn(
    response: Response,
    kept: { readonly name: string; readonly state: string },
    { path, maxAgeSeconds }: { readonly path: string; readonly maxAgeSeconds: number },
  ): void {
    const options = { secure: this.#secure, maxAgeSeconds, path };
    setCookie(response, SIGN_IN + kept.name, kept.state, options);
  }

  /**
   * Returns the encrypted state of a sign-in at an identity provider from its cookie, and removes
   * the cookie; undefined if there is none.
   */
  takeSignIn(
    request: Request,
    response: Response,
    { name, path }: { readonly name: string; readonly path: string },
  ): string | undefined {
    const state = readCookie(request, SIGN_IN + name);
    if (state !== undefined) {
      setCookie(response, SIGN_IN + name, '', { secure: this.#secure, maxAgeSeconds: 0, path });
    }
    return state;
  }
}
