import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { GrantsModule } from '#domain/oauth/grants/grants.module.js';
import { ScimTokensModule } from '#domain/directory/scim-tokens/scim-tokens.module.js';
import { SingleUseModule } from '#domain/access/single-use/single-use.module.js';
import { AccessPolicy } from '#platform/http/access/access-policy.js';
import { DpopProofs } from './dpop-proofs.service.js';
import { SessionAccessPolicy } from './session-access-policy.service.js';
import { SessionsRepository } from './sessions.repository.js';
import { Sessions } from './sessions.service.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, GrantsModule, ScimTokensModule, SingleUseModule],
  providers: [
    DpopProofs,
    Sessions,
    SessionsRepository,
    { provide: AccessPolicy, useClass: SessionAccessPolicy },
  ],
  exports: [AccessPolicy, Sessions, SessionsRepository, SingleUseModule],
})
export class SessionsModule {
  constructor(revocation: AccessRevocation, sessions: SessionsRepository) {
    revocation.register(sessions);
  }
}
