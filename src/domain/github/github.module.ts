import { Module } from '@nestjs/common';
import { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import { GitHubReachEnding } from './tokens/reach-ending.repository.js';
import { AccessModule } from '#domain/access/access.module.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { GitHubApp } from './app/github-app.service.js';
import { GitHubLinks } from './links/github-links.service.js';
import { GitHubTokenRevocation } from './tokens/github-token-revocation.repository.js';
import { GitHubTokens } from './tokens/github-tokens.service.js';
import { TokenRevoker } from './tokens/token-revoker.service.js';

@Module({
  imports: [AccessModule, AccessRevocationModule, AuditModule, DirectoryModule],
  providers: [GitHubApp, GitHubLinks, GitHubTokens, TokenRevoker],
  exports: [GitHubApp, GitHubLinks, GitHubTokens],
})
export class GitHubModule {
  constructor(revocation: AccessRevocation, endings: AccessEndings, revoker: TokenRevoker) {
    endings.register(new GitHubReachEnding(revoker));
    revocation.register(new GitHubTokenRevocation(revoker));
  }
}
