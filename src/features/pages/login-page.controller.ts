import { Controller, Get, Inject, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { PendingLogins } from '#domain/oauth/grants/pending-logins.js';
import {
  IdentityProviders,
  KEPT_STATE_COOKIE,
} from '#domain/providers/identity-providers.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sameOriginTarget } from '#platform/http/request/same-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Views } from '#platform/http/views/views.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { noteRow } from '#platform/http/access/anonymous-row.js';
import { Route } from '#platform/http/routing/route.js';
import { person } from './shell/person.js';

const QUERY = z.object({
  provider: z.string().max(32).optional(),
  login_hint: z.string().max(254).optional(),
  redirect_to: z.string().max(2048).optional(),
  /**
   * Set if an application requires a new login with the key, even if the user has just logged in.
   */
  again: z.literal('true').optional(),
  /** Set if the user has already chosen the security key, so that the page does not ask again. */
  way: z.literal('key').optional(),
  /**
   * Used only in certification test mode. `interaction` is the id of an authorization request that
   * waits for a login, and `user_code` the code of a device that waits. The form of the page
   * completes this login.
   */
  interaction: z.string().max(64).optional(),
  user_code: z.string().max(64).optional(),
});

/** Matches the path of a waiting authorization request, and captures its id. */
const INTERACTION = /^\/interaction\/([\w-]{1,64})$/;

/**
 * Serves `GET /login`: a button for each identity provider and one for the security key.
 * `?provider=` redirects to that identity provider at once.
 */
@Controller('login')
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'html',
  auth: { session: 'optional', origin: 'ui' },
})
export class LoginPageController {
  readonly #baseUrl: string;
  readonly #isCertification: boolean;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly providers: IdentityProviders,
    private readonly cookies: SessionCookies,
    private readonly views: Views,
    private readonly pending: PendingLogins,
  ) {
    this.#baseUrl = config.http.baseUrl;
    this.#isCertification = config.certification.token !== undefined;
  }

  @Get()
  @Route({ anonymousRows: true, summary: 'Shows the login page' })
  async show(
    @Caller() session: LiveSession | undefined,
    @Query({ schema: QUERY }) query: z.output<typeof QUERY>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const redirectTo = sameOriginTarget(query.redirect_to, this.#baseUrl);
    if (query.provider !== undefined) {
      noteRow(request);
      const upstream = await this.providers.begin(query.provider, {
        redirectTo,
        loginHint: query.login_hint,
        browser: this.cookies.ensureBrowserSecret(request, response),
        crossSite: isCrossSite(request),
        keep: (name, state) =>
          this.cookies.keepSignIn(response, { name, state }, KEPT_STATE_COOKIE),
      });
      response.redirect(303, upstream.href);
      return;
    }
    const providers = this.providers.list().map(({ slug, name }) => ({
      name,
      href: departureTo(slug, redirectTo, query.login_hint),
    }));
    const html = this.views.render('login', {
      person: person(session),
      providers,
      redirectTo,
      again: query.again !== undefined,
      hasChosenKey: query.way === 'key',
      isReturning: this.cookies.hasUsedKey(request),
      application: await this.#application(redirectTo),
      pending: this.#isCertification ? pendingLogin(query) : undefined,
    });
    response.type('html').send(html);
  }

  /**
   * Returns the application that waits for the login; undefined if the login does not lead back to
   * an authorization request.
   */
  async #application(redirectTo: string) {
    const uid = INTERACTION.exec(new URL(redirectTo).pathname)?.[1];
    return uid === undefined ? undefined : this.pending.applicationOf(uid);
  }
}

/**
 * Returns the path and query that start a sign-in at an identity provider.
 * @param hint the account that an application suggests; the identity provider gets it too
 */
function departureTo(slug: string, redirectTo: string, hint: string | undefined): string {
  const query = new URLSearchParams({ provider: slug, redirect_to: redirectTo });
  if (hint !== undefined) query.set('login_hint', hint);
  return `/login?${query.toString()}`;
}

/**
 * Returns true if a page of another origin opened this page, as the browser says in
 * `Sec-Fetch-Site` (Fetch Metadata). The other origin may belong to the same site (`same-site`).
 * The value `none` means the address bar or a bookmark.
 */
function isCrossSite(request: Request): boolean {
  const site = request.headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

/**
 * Returns the field of the certification form that names the waiting login; undefined if there is
 * none.
 */
function pendingLogin({ interaction, user_code: userCode }: z.output<typeof QUERY>) {
  if (interaction !== undefined) return { name: 'interaction', value: interaction };
  return userCode === undefined ? undefined : { name: 'user_code', value: userCode };
}
