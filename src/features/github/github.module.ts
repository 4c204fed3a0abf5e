import { Module } from '@nestjs/common';
import { GitHubAppModule } from '#domain/github/app/github-app.module.js';
import { GitHubLinksModule } from '#domain/github/links/github-links.module.js';
import { GitHubTokensModule } from '#domain/github/tokens/github-tokens.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { GitHubController } from './github.controller.js';
import { GitHubLinksController } from './github-links.controller.js';
import { GitHubWebhookController } from './github-webhook.controller.js';

/** Serves /v1/credentials/github/* and /api/webhooks/github. Without a GitHub App tokens and links are refused with 503. */
@UnmatchedPaths({
  '/v1/credentials/github/token': { tier: 'issuance' },
  '/api/webhooks/github': { tier: 'general', body: { max: 1024 * KIB } },
})
@Module({
  imports: [HttpModule, GitHubAppModule, GitHubLinksModule, GitHubTokensModule],
  controllers: [GitHubController, GitHubLinksController, GitHubWebhookController],
})
export class GitHubModule {}
