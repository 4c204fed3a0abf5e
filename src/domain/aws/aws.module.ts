import { Module } from '@nestjs/common';
import { IssuanceModule } from '#domain/access/access.module.js';
import { OrganizationIssuersModule } from '#domain/organizations/issuers/organization-issuers.module.js';
import { TokenSigningModule } from '#domain/oauth/token-signing/token-signing.module.js';
import { AwsTokens } from './aws-tokens.service.js';

/** Tokens for AWS. They have no revocable row: access revocation ends the session that the next token needs. */
@Module({
  imports: [IssuanceModule, OrganizationIssuersModule, TokenSigningModule],
  providers: [AwsTokens],
  exports: [AwsTokens],
})
export class AwsTokensModule {}
