import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';

/**
 * Redirects permanently from the former URLs of two account pages, because users have bookmarked
 * them.
 */
@Controller()
@Route({ tier: 'general', audience: 'ui', errors: 'html', auth: PUBLIC })
export class MovedPagesController {
  @Get('keys')
  @Route({ summary: 'Redirects to the page of the security keys' })
  keys(@Res() response: Response): void {
    response.redirect(301, '/account/keys');
  }

  @Get('sessions')
  @Route({ summary: 'Redirects to the page of the sessions' })
  sessions(@Res() response: Response): void {
    response.redirect(301, '/account/sessions');
  }
}
