import { Controller, Get, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { Views } from '#platform/http/views/views.service.js';
import { Route } from '#platform/http/routing/route.js';
import { Interactions } from './interactions.service.js';

const UID = z.object({ uid: z.string().max(64) });

/** `/interaction/{uid}`: the login and the consent that an authorization request waits for. */
@Controller('interaction/:uid')
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'negotiated',
  auth: { session: 'none', origin: 'strict' },
})
export class InteractionController {
  constructor(
    private readonly interactions: Interactions,
    private readonly views: Views,
  ) {}

  /**
   * Redirects the browser to the login page or back to the client, or shows a page. The page asks
   * for consent, or says that the application does not admit the user.
   */
  @Get()
  @Route({ summary: 'Shows the login or the consent page of an authorization' })
  async show(
    @Param({ schema: UID }) { uid }: z.output<typeof UID>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const next = await this.interactions.next(request, response, uid);
    if (next.kind === 'redirect') {
      response.redirect(303, next.location);
      return;
    }
    const isRefused = next.kind === 'refused';
    response
      .status(isRefused ? 403 : 200)
      .type('html')
      .send(this.views.render(isRefused ? 'refused' : 'consent', next.page));
  }

  /** Records the user's consent, and returns the URL to which the page goes next. */
  @Post('consent')
  @Route({ summary: 'Consents to an authorization' })
  @HttpCode(200)
  async consent(
    @Param({ schema: UID }) { uid }: z.output<typeof UID>,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    return { redirect_to: await this.interactions.consent(request, response, uid) };
  }

  /**
   * Records that the user refuses the authorization, and returns the URL to which the page goes
   * next.
   */
  @Post('deny')
  @Route({ summary: 'Denies an authorization' })
  @HttpCode(200)
  async refuse(
    @Param({ schema: UID }) { uid }: z.output<typeof UID>,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    return { redirect_to: await this.interactions.refuse(request, response, uid) };
  }
}
