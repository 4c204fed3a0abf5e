import { Body, Controller, Get, Header, Inject, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import {
  IdentityProviders,
  KEPT_STATE_COOKIE,
  OTHER_SITES_SIGN_IN,
} from '#domain/providers/identity-providers.service.js';
import { keptName } from '#domain/providers/saml/request-ids.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { UpstreamLogin } from '#domain/sign-in/upstream-login/upstream-login.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Caller } from '#platform/http/access/caller.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { goOn } from './signed-in.js';

/**
 * The form that a browser sends for the SAML provider. Its `RelayState` is ignored, because the id
 * in the response is enough to find the sign-in.
 */
const RESPONSE = z.object({ SAMLResponse: z.string().min(1) });
const PROVIDER = z.object({ provider: z.string().max(32).optional() });
const COMPLETE = z.object({ request: z.string().max(64), response: z.string().max(64) });

/**
 * Serves /saml/*: the metadata of this service, and the URLs to which a SAML provider sends a
 * browser back.
 */
@Controller('saml')
@Route({ tier: 'unlimited', audience: 'api', errors: 'html', auth: PUBLIC })
export class SamlController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly providers: IdentityProviders,
    private readonly upstreamLogin: UpstreamLogin,
    private readonly cookies: SessionCookies,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  @Get('metadata')
  @Header('content-type', 'application/samlmetadata+xml')
  @Route({ errors: 'negotiated', summary: 'The metadata of this service for SAML providers' })
  metadata(@Query({ schema: PROVIDER }) { provider }: z.output<typeof PROVIDER>): string {
    return this.providers.serviceMetadata(provider, `${this.#baseUrl}/saml/metadata`);
  }

  /**
   * Receives the response of a SAML provider from a browser. A browser sends no cookie with a POST
   * from another site, so the sign-in cannot be completed here. The answer redirects to a second
   * URL, to which the browser sends the cookies with which it began the sign-in.
   */
  @Post('acs')
  @Route({
    body: { kind: 'form', max: 64 * KIB },
    summary: 'Takes the response of a SAML provider',
  })
  async receive(
    @Body({ schema: RESPONSE }) body: z.output<typeof RESPONSE>,
    @ClientOrigin() origin: AuditOrigin,
    @Res() response: Response,
  ): Promise<void> {
    const received = await this.providers.receive(body.SAMLResponse);
    if (received.kind === 'refused') {
      await this.upstreamLogin.recordFailure(received.provider, received.error, origin);
      throw received.error;
    }
    const query = new URLSearchParams({
      request: received.requestId,
      response: received.handle,
    });
    response.redirect(303, `${this.#baseUrl}/saml/complete?${query.toString()}`);
  }

  @Get('complete')
  @Route({
    tier: 'general',
    head: false,
    auth: { session: 'optional', origin: 'any' },
    summary: 'Completes the sign-in at a SAML provider',
  })
  async complete(
    @Query({ schema: COMPLETE }) query: z.output<typeof COMPLETE>,
    @Caller() previous: LiveSession | undefined,
    @ClientOrigin() origin: AuditOrigin,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const returned = await this.providers.resume({
      url: new URL(request.originalUrl, this.#baseUrl),
      // Without both cookies no `state` matches, because a `state` is bound to the browser that
      // began the sign-in.
      kept: this.#takeKept(request, response, query.request) ?? '',
      browser: this.cookies.browserSecret(request) ?? '',
    });
    const signedIn = await this.upstreamLogin.signIn(returned, origin, previous);
    const { redirectTo } = returned;
    goOn(response, this.cookies, signedIn, { baseUrl: this.#baseUrl, redirectTo });
  }

  #takeKept(request: Request, response: Response, requestId: string): string | undefined {
    const { path } = KEPT_STATE_COOKIE;
    const take = (name: string) => this.cookies.takeSignIn(request, response, { name, path });
    return take(keptName(requestId)) ?? take(OTHER_SITES_SIGN_IN);
  }
}
