import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { ReconciliationModule } from '#domain/database-failover/reconciliation/reconciliation.module.js';
import { OrganizationAdminModule } from '#domain/organization-admin/organization-admin.module.js';
import { EnrollmentPassesModule } from '#domain/enrollment-passes/enrollment-passes.module.js';
import { MemberAccessModule } from '#domain/member-access/member-access.module.js';
import { MemberRecordsModule } from '#domain/member-records/member-records.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationDomainsModule } from '#domain/organization-domains/organization-domains.module.js';
import { OrganizationProvidersModule } from '#domain/organization-providers/organization-providers.module.js';
import { DomainsController } from './domains/domains.controller.js';
import { EnrollmentPassesController } from './members/enrollment-passes.controller.js';
import { IssuerController } from './issuer/issuer.controller.js';
import { MemberActsController } from './members/member-acts.controller.js';
import { MemberTiesController } from './members/member-ties.controller.js';
import { MembersController } from './members/members.controller.js';
import { OrganizationController } from './organization.controller.js';
import { ProvidersController } from './providers/providers.controller.js';
import { ScimTokensController } from './scim-tokens.controller.js';
import { SecretsToConfirmController } from './secrets/secrets-to-confirm.controller.js';

@UnmatchedPaths({ '/api/v1/org/*': { tier: 'general' } })
@Module({
  imports: [
    AuditModule,
    OrganizationAdminModule,
    OrganizationDomainsModule,
    DirectoryModule,
    MemberAccessModule,
    MemberRecordsModule,
    EnrollmentPassesModule,
    OrganizationProvidersModule,
    ReconciliationModule,
  ],
  controllers: [
    DomainsController,
    EnrollmentPassesController,
    IssuerController,
    MemberActsController,
    MemberTiesController,
    MembersController,
    OrganizationController,
    ProvidersController,
    ScimTokensController,
    SecretsToConfirmController,
  ],
})
export class OrgAdminModule {}
