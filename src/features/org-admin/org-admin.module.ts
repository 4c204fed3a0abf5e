import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ScimTokensModule } from '#domain/scim-tokens/scim-tokens.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationDomainsModule } from '#domain/organization-domains/organization-domains.module.js';
import { DomainsController } from './domains/domains.controller.js';
import { MembersController } from './members.controller.js';
import { OrganizationController } from './organization.controller.js';
import { OrganizationAdmin } from './organization-admin.service.js';
import { ScimTokensController } from './scim-tokens.controller.js';

@UnmatchedPaths({ '/api/v1/org/*': { tier: 'general' } })
@Module({
  imports: [
    AuditModule,
    OrganizationsModule,
    ScimTokensModule,
    DirectoryModule,
    OrganizationDomainsModule,
  ],
  controllers: [DomainsController, MembersController, OrganizationController, ScimTokensController],
  providers: [OrganizationAdmin],
})
export class OrgAdminModule {}
