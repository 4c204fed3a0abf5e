import { Controller, Get, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { z } from 'zod';
import { Access } from '#platform/http/access/access.js';
import { Views } from '#platform/http/views/views.service.js';
import { Interactions } from './interactions.service.js';

const UID = z.object({ uid: z.string().max(64) });

/** `/interaction/{uid}`: what an authorization request needs of the person at the browser, who logs in and is asked. */
@Controller('interaction/:uid')
@Access({ session: 'none', origin: 'strict' })
export class InteractionController {
  constructor(
    private readonly interactions: Interactions,
    private readonly views: Views,
  ) {}

  /** Leads on: to the login page, to a page that asks for consent, or back to the client. */
  @Get()
  async show(
    @Param({ schema: UID }) { uid }: z.output<typeof UID>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const next = await this.interactions.next(request, response, uid);
    if (next.kind === 'ask') response.type('html').send(this.views.render('consent', next.page));
    else response.redirect(303, next.location);
  }

  /** The person agrees. */
  @Post('consent')
  @HttpCode(200)
  async agree(
    @Param({ schema: UID }) { uid }: z.output<typeof UID>,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    return { redirect_to: await this.interactions.agree(request, response, uid) };
  }

  /** The person does not. */
  @Post('deny')
  @HttpCode(200)
  async refuse(
    @Param({ schema: UID }) { uid }: z.output<typeof UID>,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ) {
    return { redirect_to: await this.interactions.deny(request, response, uid) };
  }
}
