import { Module } from '@nestjs/common';
import { CryptoModule } from '#platform/crypto/crypto.module.js';
import { SingleUseStates } from './single-use-states.service.js';
import { SpentTokensRepository } from './spent-tokens.repository.js';

/** Provides the single-use states of ceremonies and upstream logins. */
@Module({
  imports: [CryptoModule],
  providers: [SingleUseStates, SpentTokensRepository],
  exports: [SingleUseStates],
})
export class SingleUseModule {}
