import { Module } from '@nestjs/common';
import { ScimTokensRepository } from './scim-tokens.repository.js';

/**
 * The secrets with which identity providers provision people, each bound to one organization.
 *
 *     (nothing) --an admin makes it, told once--> active --an admin revokes it, or its days are over--> refused
 */
@Module({ providers: [ScimTokensRepository], exports: [ScimTokensRepository] })
export class ScimTokensModule {}
