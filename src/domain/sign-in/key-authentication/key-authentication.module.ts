import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AuthenticatorsModule } from '#domain/keys/authenticators/authenticators.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { KeyAuthentication } from './key-authentication.service.js';
import { SecurityKeys } from './security-keys.service.js';

@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    AuthenticatorsModule,
    DirectoryModule,
    SessionsModule,
  ],
  providers: [KeyAuthentication, SecurityKeys],
  exports: [KeyAuthentication, SecurityKeys],
})
export class KeyAuthenticationModule {}
