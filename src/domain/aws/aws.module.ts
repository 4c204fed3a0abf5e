import { Module } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { AwsTokens } from './aws-tokens.service.js';

/**
 * Tokens for AWS. No row stands for a token that could be revoked: a token lives for minutes, and
 * access revocation ends the session that the next token needs.
 */
@Module({
  imports: [AccessModule, OAuthModule, OrganizationsModule],
  providers: [AwsTokens],
  exports: [AwsTokens],
})
export class AwsModule {}
