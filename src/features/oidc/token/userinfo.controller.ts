import {
  Controller,
  Get,
  HttpCode,
  Inject,
  Post,
  Req,
  Res,
  type OnModuleInit,
} from '@nestjs/common';
import type { Request, Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import { keepOneChallenge } from '../engine/provider-middleware.js';
import { OAUTH_ROUTES } from '../protocol/oauth.schemas.js';

/**
 * `/oauth/userinfo`: returns the claims about the user of an access token (OpenID Connect Core
 * §5.3).
 */
@Controller('oauth/userinfo')
@Route({
  tier: 'unlimited',
  body: { kind: 'fields' },
  audience: 'api',
  errors: 'oauth',
  auth: PUBLIC,
})
export class UserinfoController implements OnModuleInit {
  readonly #baseUrl: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly oidcProvider: OidcProvider,
  ) {
    this.#baseUrl = config.http.baseUrl;
  }

  onModuleInit(): void {
    this.oidcProvider.after('userinfo', (ctx) => {
      keepOneChallenge(ctx, this.#baseUrl);
      // A text is a signed response (a JWT), which has this media type. A JSON body keeps its own
      // type. It has plain claims, or the error of a fault such as a key service that does not
      // sign.
      if (ctx.status === 200 && typeof ctx.body === 'string') {
        ctx.set('content-type', 'application/jwt');
      }
    });
  }

  @Get()
  @Route({
    operation: 'getUserClaims',
    summary: 'Claims about the user (OpenID Connect Core §5.3)',
    ...OAUTH_ROUTES.userinfo,
  })
  userinfo(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }

  @Post()
  @Route({
    operation: 'postUserClaims',
    summary: 'Claims about the user, by POST',
    ...OAUTH_ROUTES.userinfoByPost,
  })
  @HttpCode(200)
  userinfoByPost(@Req() request: Request, @Res() response: Response): Promise<void> {
    return this.oidcProvider.answer(request, response);
  }
}
