import { Module, type OnModuleInit } from '@nestjs/common';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { AdminModule } from '#domain/admin/admin.module.js';
import { GitHubModule } from '#domain/github/github.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { AccessPageController } from './admin/access/access-page.controller.js';
import { ChangePageController } from './admin/access/change-page.controller.js';
import { TargetPageController } from './admin/access/target-page.controller.js';
import { ApplicationsPageController } from './admin/applications/applications-page.controller.js';
import { DomainsPageController } from './admin/settings/domains-page.controller.js';
import { GitHubPageController } from './admin/settings/github-page.controller.js';
import { ProvidersPageController } from './admin/settings/providers-page.controller.js';
import { SettingsPageController } from './admin/settings/settings-page.controller.js';
import { ReceiversPageController } from './admin/receivers/receivers-page.controller.js';
import { ApiTokensPageController } from './admin/tokens/api-tokens-page.controller.js';
import { TokensPageController } from './admin/tokens/tokens-page.controller.js';

/** The folders with the templates of the pages that this module serves. */
const VIEWS = [
  'admin/access/views/',
  'admin/receivers/views/',
  'admin/tokens/views/',
  'admin/settings/views/',
  'admin/applications/views/',
];

/**
 * Serves the pages below /admin on which admins set up their organization: targets, tokens,
 * settings and applications.
 */
@Module({
  imports: [OAuthModule, GitHubModule, HttpModule, AdminModule],
  controllers: [
    AccessPageController,
    ApiTokensPageController,
    ChangePageController,
    TargetPageController,
    ApplicationsPageController,
    DomainsPageController,
    GitHubPageController,
    ProvidersPageController,
    ReceiversPageController,
    SettingsPageController,
    TokensPageController,
  ],
})
export class SettingsPagesModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    for (const folder of VIEWS) this.views.register(new URL(folder, import.meta.url));
  }
}
