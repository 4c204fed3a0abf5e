import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { GrantsModule } from '#domain/grants/grants.module.js';
import { ScimTokensModule } from '#domain/scim-tokens/scim-tokens.module.js';
import { CryptoModule } from '#platform/crypto/crypto.module.js';
import { AccessPolicy } from '#platform/http/access/access-policy.js';
import { AccessTokenRule } from './access-token-rule.service.js';
import { DpopProofs } from './dpop-proofs.service.js';
import { OwnSessionsRepository } from './own-sessions.repository.js';
import { SessionAccessPolicy } from './session-access-policy.service.js';
import { SessionLookUps } from './session-look-ups.service.js';
import { SessionsRepository } from './sessions.repository.js';
import { Sessions } from './sessions.service.js';
import { SingleUseStates } from './single-use-states.service.js';
import { SpentTokensRepository } from './spent-tokens.repository.js';

/**
 * Sessions of two levels, each a row that is looked up live; and the single-use states of ceremonies.
 *
 *     (nobody) --sign in upstream--> bootstrap --assertion of an own key--> verified --expiry, logout--> (nobody)
 *
 * A third level, synthetic, stands for nobody's key: it drives OAuth in certification test mode, and opens nothing here.
 */
@Module({
  imports: [AuditModule, CryptoModule, GrantsModule, ScimTokensModule],
  providers: [
    AccessTokenRule,
    DpopProofs,
    OwnSessionsRepository,
    Sessions,
    SessionLookUps,
    SessionsRepository,
    SingleUseStates,
    SpentTokensRepository,
    { provide: AccessPolicy, useClass: SessionAccessPolicy },
  ],
  exports: [AccessPolicy, OwnSessionsRepository, Sessions, SessionsRepository, SingleUseStates],
})
export class SessionsModule {}
