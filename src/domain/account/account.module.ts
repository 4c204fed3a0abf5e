import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { SignInModule } from '#domain/sign-in/sign-in.module.js';
import { OwnAccess } from './own-access.service.js';
import { OwnAccount } from './own-account.service.js';

/**
 * The account of a user as the user sees it: credentials, applications, activity, and an export of
 * the stored data.
 */
@Module({
  imports: [AuditModule, DirectoryModule, SessionsModule, SignInModule],
  providers: [OwnAccess, OwnAccount],
  exports: [OwnAccess, OwnAccount],
})
export class AccountModule {}
