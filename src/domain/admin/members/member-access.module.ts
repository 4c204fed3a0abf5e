import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AuthenticatorsModule } from '#domain/keys/authenticators/authenticators.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { MemberAccess } from './member-access.service.js';

@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    AuthenticatorsModule,
    DirectoryModule,
    SessionsModule,
  ],
  providers: [MemberAccess],
  exports: [MemberAccess],
})
export class MemberAccessModule {}
