import { Module } from '@nestjs/common';
import { SealedTokens } from './sealed-tokens.service.js';

/** Provides tokens that are sealed under the root secret. */
@Module({ providers: [SealedTokens], exports: [SealedTokens] })
export class CryptoModule {}
