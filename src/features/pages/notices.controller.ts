import { Body, Controller, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';

/** The form under the notices: the newest one that the page showed, and the page that follows. */
const READ = z.strictObject({ newest: z.uuid(), back: z.enum(['/', '/account']) });

/** Removes the notices about an account that its user has read. */
@Controller('account/notices')
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'html',
  auth: { session: 'verified', origin: 'strict' },
})
export class NoticesController {
  constructor(private readonly account: OwnAccount) {}

  /** Removes the notices up to the newest one that the page showed, and opens the page again. */
  @Post('dismiss')
  @Route({ body: { kind: 'form' }, summary: 'Removes the notices that the user has read' })
  async dismiss(
    @Caller() { user }: VerifiedSession,
    @Body({ schema: READ }) { newest, back }: z.output<typeof READ>,
    @Res() response: Response,
  ): Promise<void> {
    await this.account.dismissNotices(user.id, newest);
    response.redirect(303, back);
  }
}
