import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { GitHubAppModule } from '../app/github-app.module.js';
import { GitHubTokensModule } from '../tokens/github-tokens.module.js';
import { SingleUseModule } from '#domain/access/single-use/single-use.module.js';
import { GitHubLinks } from './github-links.service.js';

@Module({
  imports: [AuditModule, DirectoryModule, GitHubAppModule, GitHubTokensModule, SingleUseModule],
  providers: [GitHubLinks],
  exports: [GitHubLinks],
})
export class GitHubLinksModule {}
