import { Module } from '@nestjs/common';
import { GitHubModule } from '#domain/github/github.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { GitHubController } from './github.controller.js';
import { GitHubLinksController } from './github-links.controller.js';
import { GitHubWebhookController } from './github-webhook.controller.js';

/**
 * Serves /v1/credentials/github/* and /api/webhooks/github. If the operator has configured no
 * GitHub App, requests for tokens and links get 503.
 */
@UnmatchedPaths({
  '/v1/credentials/github/token': { tier: 'issuance' },
  '/api/webhooks/github': { tier: 'general', body: { max: 1024 * KIB } },
})
@Module({
  imports: [HttpModule, GitHubModule],
  controllers: [GitHubController, GitHubLinksController, GitHubWebhookController],
})
export class GitHubApiModule {}
