import { Module } from '@nestjs/common';
import { ScimTokensRepository } from './scim-tokens.repository.js';

@Module({ providers: [ScimTokensRepository], exports: [ScimTokensRepository] })
export class ScimTokensModule {}
