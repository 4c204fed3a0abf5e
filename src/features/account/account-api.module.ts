import { Module } from '@nestjs/common';
import { AccountModule } from '#domain/account/account.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AccountAccessController } from './account-access.controller.js';
import { AccountRecordsController } from './account-records.controller.js';
import { SetupController } from './setup.controller.js';

/** Serves the API of a user's own account: `/v1/account` and `/v1/setup`. */
@UnmatchedPaths({ '/v1/account/*': { tier: 'general' }, '/v1/setup/*': { tier: 'general' } })
@Module({
  imports: [AccountModule],
  controllers: [AccountAccessController, AccountRecordsController, SetupController],
})
export class AccountApiModule {}
