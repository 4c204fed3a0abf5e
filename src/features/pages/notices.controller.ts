import { Body, Controller, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { z } from 'zod';
import { MOST_SHOWN } from '#domain/audit/notices/account-notices.repository.js';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';

/**
 * The form under the notices: the ids of the notices that the page showed, separated by commas, and
 * the page that opens next.
 */
const READ = z.strictObject({
  shown: z
    .string()
    .max(MOST_SHOWN * 37)
    .transform((ids) => ids.split(','))
    .pipe(z.array(z.uuid())),
  back: z.enum(['/', '/account']),
});

/**
 * Removes the notices and hints that the pages of an account show, after the user has read them.
 */
@Controller('account/notices')
@Route({
  tier: 'general',
  audience: 'ui',
  errors: 'html',
  auth: { session: 'verified', origin: 'strict' },
})
export class NoticesController {
  constructor(
    private readonly account: OwnAccount,
    private readonly cookies: SessionCookies,
  ) {}

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

  /**
   * Hides, in this browser, the hint that the user has only one key. A cookie stores this, so that
   * the server leaves the hint out and no script is needed. The cookie names the key: if another
   * key becomes the only one, the hint is shown again.
   */
  @Post('one-key')
  @Route({ body: { kind: 'form' }, summary: 'Hides the hint about having one key only' })
  hideOneKey(@Caller() { authenticatorId }: VerifiedSession, @Res() response: Response): void {
    this.cookies.rememberDismissed(response, authenticatorId);
    response.redirect(303, '/account');
  }
}
