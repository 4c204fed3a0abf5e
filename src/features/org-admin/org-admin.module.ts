import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationIssuersModule } from '#domain/organization-issuers/organization-issuers.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ScimTokensModule } from '#domain/scim-tokens/scim-tokens.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationDomainsModule } from '#domain/organization-domains/organization-domains.module.js';
import { OrganizationProvidersModule } from '#domain/organization-providers/organization-providers.module.js';
import { DomainsController } from './domains/domains.controller.js';
import { IssuerAdmin } from './issuer/issuer-admin.service.js';
import { IssuerController } from './issuer/issuer.controller.js';
import { MembersController } from './members.controller.js';
import { OrganizationController } from './organization.controller.js';
import { OrganizationAdmin } from './organization-admin.service.js';
import { ProvidersController } from './providers/providers.controller.js';
import { ScimTokensController } from './scim-tokens.controller.js';

@UnmatchedPaths({ '/api/v1/org/*': { tier: 'general' } })
@Module({
  imports: [
    AuditModule,
    OrganizationDomainsModule,
    OrganizationIssuersModule,
    OrganizationsModule,
    ScimTokensModule,
    DirectoryModule,
    OrganizationProvidersModule,
  ],
  controllers: [
    DomainsController,
    IssuerController,
    MembersController,
    OrganizationController,
    ProvidersController,
    ScimTokensController,
  ],
  providers: [IssuerAdmin, OrganizationAdmin],
})
export class OrgAdminModule {}
