import { Module } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { AwsTokens } from './aws-tokens.service.js';

/**
 * Tokens for AWS. They have no revocable row: access revocation ends the session that the next
 * token needs.
 */
@Module({
  imports: [AccessModule, OAuthModule, OrganizationsModule],
  providers: [AwsTokens],
  exports: [AwsTokens],
})
export class AwsModule {}
