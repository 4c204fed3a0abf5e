import { randomBytes } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { SESSION_COOKIE, readCookie, setCookie } from './cookies.js';

/** Ties a sign-in or a login to the browser that began it, before there is a session. */
const BROWSER_COOKIE = 'svc_browser';
const BROWSER_SECRET = /^[\w-]{43}$/; // 256 bits, base64url

/** The cookies we set: HttpOnly, SameSite=Lax, Path=/, and Secure whenever the base URL is https. */
@Injectable()
export class SessionCookies {
  readonly #secure: boolean;

  constructor(@Inject(CONFIG) config: Config) {
    this.#secure = config.http.baseUrl.startsWith('https:');
  }

  /** Hands a session's token to the browser, for as long as the session lasts. */
  set(response: Response, session: { readonly token: string; readonly expiresAt: Date }): void {
    const maxAgeSeconds = Math.floor((session.expiresAt.getTime() - Date.now()) / 1000);
    setCookie(response, SESSION_COOKIE, session.token, { secure: this.#secure, maxAgeSeconds });
  }

  /** Takes the token away. */
  clear(response: Response): void {
    setCookie(response, SESSION_COOKIE, '', { secure: this.#secure, maxAgeSeconds: 0 });
  }

  /** The browser's secret, minted on first need: 256 random bits that only this browser presents. */
  ensureBrowserSecret(request: Request, response: Response): string {
    const known = this.browserSecret(request);
    if (known !== undefined) return known;
    const secret = randomBytes(32).toString('base64url');
    setCookie(response, BROWSER_COOKIE, secret, { secure: this.#secure });
    return secret;
  }

  /** The browser's secret, if it has one. */
  browserSecret(request: Request): string | undefined {
    const value = readCookie(request, BROWSER_COOKIE);
    return value !== undefined && BROWSER_SECRET.test(value) ? value : undefined;
  }
}
