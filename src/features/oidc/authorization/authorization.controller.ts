import { Body, Controller, Get, Inject, Post, Req, Res, type OnModuleInit } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { noteRow } from '#platform/http/access/anonymous-row.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { ENDPOINT_PATHS } from '#domain/oauth/applications/endpoints.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { queryOf, type FormFields } from '../request/request-context.js';
import { Adapters } from '../storage/adapters.service.js';
import { interactionOver } from './interactions.service.js';
import { findPostedRequest, isReference, storePostedRequest } from './posted-requests.js';
import { resolveRequestObject } from './request-object.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/**
 * The largest number of characters of a query to which a POST is redirected, because a proxy may
 * refuse a longer URL.
 */
const LONGEST_QUERY = 2048;

/**
 * `/oauth/authorize` and `/oauth/par`: authorization requests of browsers (RFC 6749 §3.1) and of
 * clients (RFC 9126).
 */
@Controller('oauth')
@Route({ tier: 'general', audience: 'navigation', errors: 'html', auth: PUBLIC })
export class AuthorizationController implements OnModuleInit {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
    private readonly adapters: Adapters,
    private readonly outboundHttp: OutboundHttp,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  /**
   * Registers a function that fetches request objects. It runs before the OAuth library reads a
   * request.
   */
  onModuleInit(): void {
    const { oidcProvider, outboundHttp } = this;
    oidcProvider.before((ctx) => resolveRequestObject(ctx, oidcProvider.provider, outboundHttp));
  }

  @Get('authorize')
  @Route({
    anonymousRows: true,
    body: { max: 64 * KIB },
    summary: 'Begins an authorization (RFC 6749 §4.1.1)',
  })
  async authorize(@Req() request: Request, @Res() response: Response): Promise<void> {
    const query = new URL(request.url, this.#baseUrl).searchParams;
    if (isReference(query)) {
      const stored = await findPostedRequest(query, this.adapters);
      if (!stored) throw interactionOver();
      request.url = `${ENDPOINT_PATHS.authorization}?${stored.toString()}`;
    }
    await this.oidcProvider.answer(request, response);
  }

  /**
   * Redirects a POST (OpenID Connect Core §3.1.2.1) to a GET with the same parameters. In a POST
   * from another site, a browser sends no cookie with `SameSite=Lax`. A request that is too long
   * for a URL is stored, and the URL of the GET refers to it.
   */
  @Post('authorize')
  @Route({
    anonymousRows: true,
    body: { kind: 'fields', max: 64 * KIB },
    summary: 'Begins an authorization by a form',
  })
  async authorizeByPost(
    @Body() fields: FormFields,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const query = queryOf(fields);
    const isLong = query.toString().length > LONGEST_QUERY;
    if (isLong) noteRow(request);
    const sent = isLong ? await storePostedRequest(query, this.adapters) : query;
    response.redirect(303, `${this.#baseUrl}${ENDPOINT_PATHS.authorization}?${sent.toString()}`);
  }

  @Post('par')
  @Route({
    tier: 'authentication',
    anonymousRows: true,
    body: { kind: 'fields' },
    audience: 'api',
    errors: 'oauth',
    operation: 'pushAuthorizationRequest',
    summary: 'Takes a pushed authorization request (RFC 9126)',
    ...OAUTH_ROUTES.par,
  })
  push(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }

  /** Continues an authorization request after the user has logged in or consented. */
  @Get('authorize/:uid')
  @Route({ summary: 'Resumes an authorization after an interaction' })
  resume(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
