import { Module } from '@nestjs/common';
import { ScimRefusals } from './scim-refusals.service.js';
import { ScimTokensRepository } from './scim-tokens.repository.js';

@Module({
  providers: [ScimRefusals, ScimTokensRepository],
  exports: [ScimRefusals, ScimTokensRepository],
})
export class ScimTokensModule {}
