import { Body, Controller, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { MOST_SHOWN } from '#domain/audit/notices/account-notices.repository.js';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';

/** The form under the notices: the ids that the page showed, and the page that follows. */
const READ = z.strictObject({
  shown: z
    .string()
    .max(MOST_SHOWN * 37)
    .transform((ids) => ids.split(','))
    .pipe(z.array(z.uuid())),
  back: z.enum(['/', '/account']),
});

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

  /** Removes the notices that the page showed, and opens the page again. */
  @Post('dismiss')
  @Route({ body: { kind: 'form' }, summary: 'Removes the notices that the user has read' })
  async dismiss(
    @Caller() { user }: VerifiedSession,
    @Body({ schema: READ }) { shown, back }: z.output<typeof READ>,
    @Res() response: Response,
  ): Promise<void> {
    await this.account.dismissNotices(user.id, shown);
    response.redirect(303, back);
  }
}
