import { Module, type OnModuleInit } from '@nestjs/common';
import { OrganizationAdminModule } from '#domain/organization-admin/organization-admin.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { TokensPageController } from './admin/tokens/tokens-page.controller.js';

/** The folders of the templates. */
const VIEWS = ['admin/tokens/views/'];

/** Serves the pages below /admin on which admins set up their organization: tokens, settings and applications. */
@Module({
  imports: [HttpModule, OrganizationAdminModule],
  controllers: [TokensPageController],
})
export class SettingsPagesModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    for (const folder of VIEWS) this.views.register(new URL(folder, import.meta.url));
  }
}
