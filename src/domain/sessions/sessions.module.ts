import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { GrantsModule } from '#domain/grants/grants.module.js';
import { ScimTokensModule } from '#domain/scim-tokens/scim-tokens.module.js';
import { SingleUseModule } from '#domain/single-use/single-use.module.js';
import { CryptoModule } from '#platform/crypto/crypto.module.js';
import { AccessPolicy } from '#platform/http/access/access-policy.js';
import { AccessTokenRule } from './access-token-rule.service.js';
import { DpopProofs } from './dpop-proofs.service.js';
import { OwnSessionsRepository } from './own-sessions.repository.js';
import { SessionAccessPolicy } from './session-access-policy.service.js';
import { SessionLookUps } from './session-look-ups.service.js';
import { SessionsRepository } from './sessions.repository.js';
import { Sessions } from './sessions.service.js';

/**
 * Sessions of two levels, each a row that is looked up live.
 *
 *     (nobody) --sign in upstream--> bootstrap --assertion of an own key--> verified --expiry, logout--> (nobody)
 *
 * A third level, synthetic, stands for nobody's key: it drives OAuth in certification test mode, and opens nothing here.
 */
@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    CryptoModule,
    GrantsModule,
    ScimTokensModule,
    SingleUseModule,
  ],
  providers: [
    AccessTokenRule,
    DpopProofs,
    OwnSessionsRepository,
    Sessions,
    SessionLookUps,
    SessionsRepository,
    { provide: AccessPolicy, useClass: SessionAccessPolicy },
  ],
  exports: [AccessPolicy, OwnSessionsRepository, Sessions, SessionsRepository, SingleUseModule],
})
export class SessionsModule {
  constructor(revocation: AccessRevocation, sessions: SessionsRepository) {
    revocation.register(sessions);
  }
}
