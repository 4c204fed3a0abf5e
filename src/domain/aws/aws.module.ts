import { Module } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { AwsTokens } from './aws-tokens.service.js';

/**
 * Tokens that AWS exchanges for credentials. The service cannot revoke such a token, because AWS
 * verifies the token without asking the service. But the token expires within minutes, and access
 * revocation ends the session that the next token needs.
 */
@Module({
  imports: [AccessModule, OAuthModule, OrganizationsModule],
  providers: [AwsTokens],
  exports: [AwsTokens],
})
export class AwsModule {}
