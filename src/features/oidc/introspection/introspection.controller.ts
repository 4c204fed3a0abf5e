import { Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { UnconfirmedRequest } from '#platform/http/access/caller.js';
import type { Unconfirmed } from '#platform/http/access/unconfirmed.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { AccessTokens } from '../engine/access-tokens.service.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { Adapters } from '../storage/adapters.service.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/** `POST /oauth/introspect`: describes a token to a client (RFC 7662). */
@Controller('oauth/introspect')
@Route({
  tier: 'general',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class IntrospectionController {
  constructor(
    private readonly oidcProvider: OidcProvider,
    private readonly accessTokens: AccessTokens,
    private readonly adapters: Adapters,
  ) {}

  @Post()
  @Route({
    admission: 'beside',
    operation: 'introspectToken',
    summary: 'Introspects a token (RFC 7662)',
    ...OAUTH_ROUTES.introspect,
  })
  @HttpCode(200)
  async introspect(
    @Req() request: Request,
    @Res() response: Response,
    @UnconfirmedRequest() unconfirmed: Unconfirmed | undefined,
  ): Promise<void> {
    await this.accessTokens.replaceJwt(request.body);
    const fields = request.body as Readonly<Record<string, unknown>> | undefined;
    this.adapters.lookAhead({ req: request }, clientIdOf(request, fields), fields?.['token']);
    await unconfirmed?.confirm();
    await this.oidcProvider.answer(request, response);
  }
}

/**
 * Returns the client id that a request names in its Basic credentials (RFC 6749 §2.3.1) or in the
 * field `client_id`; undefined if there is none. The id is used only to begin look-ups early,
 * because the OAuth library authenticates the client later.
 */
function clientIdOf(
  { headers }: Request,
  fields: Readonly<Record<string, unknown>> | undefined,
): string | undefined {
  const basic = /^basic +([\w+/=]+)$/i.exec(headers.authorization ?? '')?.[1];
  if (basic === undefined) {
    const id = fields?.['client_id'];
    return typeof id === 'string' ? id : undefined;
  }
  const [id = ''] = Buffer.from(basic, 'base64').toString().split(':', 1);
  try {
    return decodeURIComponent(id.replaceAll('+', ' '));
  } catch {
    return undefined; // the library refuses the credentials
  }
}
