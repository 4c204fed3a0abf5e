import { Readable } from 'node:stream';
import { Controller, Get, Query, StreamableFile } from '@nestjs/common';
import { z } from 'zod';
import { OwnAccount } from '#domain/account/own-account.service.js';
import type { EventRange } from '#domain/account/own-events.repository.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { logError } from '#platform/http/errors/error-log.js';
import { Route } from '#platform/http/routing/route.js';
import { ACTIVITIES_JSON, PAGE_QUERY, activityJson, nextJson } from './account.schemas.js';

/**
 * The schema of an account export, which names one member only. The guide about the account lists
 * all members.
 */
const EXPORT_JSON = z
  .looseObject({ exported_at: z.iso.datetime().describe('The time of the export.') })
  .describe('Everything that is held about the user.');

/**
 * Serves the activity of a user, and an export of everything that the service holds about the user.
 */
@Controller('v1/account')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: USER_ACCESS })
export class AccountRecordsController {
  constructor(private readonly account: OwnAccount) {}

  @Get('activity')
  @Route({
    operation: 'listMyActivity',
    summary: 'Lists the audit events of the user',
    answers: { 200: ACTIVITIES_JSON },
  })
  async activity(
    @Caller() { user }: VerifiedSession,
    @Query({ schema: PAGE_QUERY }) range: EventRange,
  ): Promise<z.output<typeof ACTIVITIES_JSON>> {
    const { items, next } = await this.account.activity(user.id, range);
    return { events: items.map((event) => activityJson(event, user.id)), next: nextJson(next) };
  }

  @Get('export')
  @Route({
    operation: 'exportMyAccount',
    summary: 'Exports everything that is held about the user, as a file',
    answers: { 200: EXPORT_JSON },
  })
  async export(@Caller() session: VerifiedSession): Promise<StreamableFile> {
    const parts = await this.account.export(session);
    return new StreamableFile(Readable.from(parts), {
      type: 'application/json',
      disposition: 'attachment; filename="account.json"',
    }).setErrorHandler(cutOff);
  }
}

/**
 * Logs the error of an export that failed before its end, and closes the connection. Otherwise the
 * client would take the part that it got for the whole file.
 */
function cutOff(error: Error, response: { readonly destroy?: () => void }): void {
  logError(asDomainError(error));
  response.destroy?.();
}
