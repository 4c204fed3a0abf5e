import { Module, type OnModuleInit } from '@nestjs/common';
import { ApplicationsModule } from '#domain/oauth/applications/applications.module.js';
import { ReconciliationModule } from '#domain/admin/database-failover/reconciliation/reconciliation.module.js';
import { GitHubAppModule } from '#domain/github/app/github-app.module.js';
import { GitHubTokensModule } from '#domain/github/tokens/github-tokens.module.js';
import { OrganizationAdminModule } from '#domain/admin/organization/organization-admin.module.js';
import { OrganizationDomainsModule } from '#domain/admin/organization/organization-domains.module.js';
import { OrganizationProvidersModule } from '#domain/admin/organization/organization-providers.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { ApplicationsPageController } from './admin/applications/applications-page.controller.js';
import { DomainsPageController } from './admin/settings/domains-page.controller.js';
import { GitHubPageController } from './admin/settings/github-page.controller.js';
import { ProvidersPageController } from './admin/settings/providers-page.controller.js';
import { SettingsPageController } from './admin/settings/settings-page.controller.js';
import { TokensPageController } from './admin/tokens/tokens-page.controller.js';

/** The folders of the templates. */
const VIEWS = ['admin/tokens/views/', 'admin/settings/views/', 'admin/applications/views/'];

/** Serves the pages below /admin on which admins set up their organization: tokens, settings and applications. */
@Module({
  imports: [
    ApplicationsModule,
    GitHubAppModule,
    GitHubTokensModule,
    HttpModule,
    OrganizationAdminModule,
    OrganizationDomainsModule,
    OrganizationProvidersModule,
    ReconciliationModule,
  ],
  controllers: [
    ApplicationsPageController,
    DomainsPageController,
    GitHubPageController,
    ProvidersPageController,
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
