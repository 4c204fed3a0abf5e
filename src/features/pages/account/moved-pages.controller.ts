import { Controller, Get, Res } from '@nestjs/common';
import type { Response } from 'express';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';

/**
 * Redirects permanently from the addresses that the account pages had before version 0.9, because
 * users have bookmarks.
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
