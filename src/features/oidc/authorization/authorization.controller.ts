import { Body, Controller, Get, Inject, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { PostedRequests } from './posted-requests.service.js';
import { queryOf, type FormFields } from '../request/form-fields.js';
import { signInOver } from '../protocol/sign-in-over.js';
import { ROUTES } from '../engine/configuration.js';

/** In characters: an address with a longer query may be too long for a proxy on the way. */
const LONGEST_QUERY = 2048;

/** `/oauth/authorize` and `/oauth/par`: authorization requests of browsers (RFC 6749 §3.1) and of clients (RFC 9126). */
@Controller('oauth')
@Route({ tier: 'general', audience: 'navigation', errors: 'html', auth: PUBLIC })
export class AuthorizationController {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidc: OidcProvider,
    private readonly posted: PostedRequests,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  @Get('authorize')
  @Route({ body: { max: 64 * KIB }, summary: 'Begins an authorization (RFC 6749 §4.1.1)' })
  async authorize(@Req() request: Request, @Res() response: Response): Promise<void> {
    const query = new URL(request.url, this.#baseUrl).searchParams;
    if (this.posted.isReference(query)) {
      const kept = await this.posted.find(query);
      if (!kept) throw signInOver();
      request.url = `${ROUTES.authorization}?${kept.toString()}`;
    }
    await this.oidc.answer(request, response);
  }

  /**
   * OpenID Connect Core §3.1.2.1 wants POST as well: it leads to the GET, since Lax cookies do not come with the POST. A request
   * that is too long for an address is kept, and the address has a reference to it.
   */
  @Post('authorize')
  @Route({ body: { kind: 'fields', max: 64 * KIB }, summary: 'Begins an authorization by a form' })
  async authorizeByPost(@Body() fields: FormFields, @Res() response: Response): Promise<void> {
    const query = queryOf(fields);
    const isLong = query.toString().length > LONGEST_QUERY;
    const sent = isLong ? await this.posted.keep(query) : query;
    response.redirect(303, `${this.#baseUrl}${ROUTES.authorization}?${sent.toString()}`);
  }

  @Post('par')
  @Route({
    tier: 'authentication',
    body: { kind: 'fields' },
    audience: 'api',
    errors: 'oauth',
    summary: 'Takes a pushed authorization request (RFC 9126)',
  })
  push(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** Goes on with a request after its interaction. */
  @Get('authorize/:uid')
  @Route({ summary: 'Resumes an authorization after an interaction' })
  resume(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }
}
