import { Module } from '@nestjs/common';
import { CryptoModule } from '#platform/crypto/crypto.module.js';
import { SingleUseStates } from './single-use-states.service.js';

@Module({ imports: [CryptoModule], providers: [SingleUseStates], exports: [SingleUseStates] })
export class SingleUseModule {}
