import { Controller, Get } from '@nestjs/common';
import { OwnAccount } from '#domain/account/own-account.service.js';
import { USER_ACCESS } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { SETUP_JSON, setupJson, type SetupJson } from './setup.schemas.js';

/**
 * Lists the hosts, roles, clusters and applications that a user may use, for `svc setup`, which
 * configures the user's machine.
 */
@Controller('v1/setup')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: USER_ACCESS })
export class SetupController {
  constructor(private readonly account: OwnAccount) {}

  @Get()
  @Route({
    operation: 'getSetup',
    summary: 'Lists the hosts, roles, clusters and applications that the user reaches',
    answers: { 200: SETUP_JSON },
  })
  async list(@Caller() { user }: VerifiedSession): Promise<SetupJson> {
    const { reach, changedAt } = await this.account.setup(user);
    return setupJson(reach, changedAt);
  }
}
