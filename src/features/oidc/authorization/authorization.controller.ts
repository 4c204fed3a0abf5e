import { Body, Controller, Get, Inject, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { Public } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { PostedRequests } from './posted-requests.service.js';
import { signInOver } from '../protocol/sign-in-over.js';
import { ROUTES } from '../engine/configuration.js';

/** The fields of a form, as they came. */
type Fields = Readonly<Record<string, string | readonly string[]>> | undefined;

/** In characters: an address with a longer query may be too long for a proxy on the way. */
const LONGEST_QUERY = 2048;

/** Where browsers come with an authorization request, and where they come back to after an interaction. */
@Controller('oauth')
@Public()
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
  @BodyType('fields')
  async authorizeByPost(@Body() fields: Fields, @Res() response: Response): Promise<void> {
    const query = queryOf(fields);
    const isLong = query.toString().length > LONGEST_QUERY;
    const sent = isLong ? await this.posted.keep(query) : query;
    this.#redirectToGet(ROUTES.authorization, sent, response);
  }

  @Get('authorize/:uid')
  resume(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidc.answer(request, response);
  }

  /** RP-Initiated Logout §2. */
  @Get('logout')
  logOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    request.headers.accept = 'text/html'; // whoever comes here is a browser's user, errors and all
    return this.oidc.answer(request, response);
  }

  @Post('logout')
  @BodyType('fields')
  logOutByPost(@Body() fields: Fields, @Res() response: Response): void {
    this.#redirectToGet(ROUTES.end_session, queryOf(fields), response);
  }

  @Post('logout/confirm')
  @BodyType('fields')
  confirmLogOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    if (request.headers.accept !== 'application/json') request.headers.accept = 'text/html';
    return this.oidc.answer(request, response);
  }

  @Get('logout/success')
  loggedOut(@Req() request: Request, @Res() response: Response): Promise<void> {
    request.headers.accept = 'text/html';
    return this.oidc.answer(request, response);
  }

  #redirectToGet(path: string, query: URLSearchParams, response: Response): void {
    response.redirect(303, `${this.#baseUrl}${path}?${query.toString()}`);
  }
}

function queryOf(fields: Fields): URLSearchParams {
  return new URLSearchParams(
    Object.entries(fields ?? {}).flatMap(([name, values]) =>
      [values].flat().map((value): [string, string] => [name, value]),
    ),
  );
}
