import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { GitHubAppModule } from '../app/github-app.module.js';
import { IssuanceModule } from '#domain/access/access.module.js';
import { GitHubTokenRevocation } from './github-token-revocation.repository.js';
import { GitHubTokens } from './github-tokens.service.js';
import { TokenRevoker } from './token-revoker.service.js';

@Module({
  imports: [AccessRevocationModule, GitHubAppModule, IssuanceModule],
  providers: [GitHubTokens, GitHubTokenRevocation, TokenRevoker],
  exports: [GitHubTokens, TokenRevoker],
})
export class GitHubTokensModule {
  constructor(revocation: AccessRevocation, tokens: GitHubTokenRevocation) {
    revocation.register(tokens);
  }
}
