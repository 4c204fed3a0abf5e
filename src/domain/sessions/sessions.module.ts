import { Module } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { AccessPolicy } from '#platform/http/access/access-policy.js';
import { SessionAccessPolicy } from './session-access-policy.service.js';
import { SessionsRepository } from './sessions.repository.js';
import { Sessions } from './sessions.service.js';

@Module({
  imports: [AccessModule, AccessRevocationModule, AuditModule, DirectoryModule, OAuthModule],
  providers: [
    Sessions,
    SessionsRepository,
    { provide: AccessPolicy, useClass: SessionAccessPolicy },
  ],
  exports: [AccessPolicy, Sessions, SessionsRepository],
})
export class SessionsModule {
  constructor(revocation: AccessRevocation, sessions: SessionsRepository) {
    revocation.register(sessions);
  }
}
