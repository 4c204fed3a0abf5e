import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationIssuersModule } from '#domain/organizations/issuers/organization-issuers.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ScimTokensModule } from '#domain/directory/scim-tokens/scim-tokens.module.js';
import { IssuerAdmin } from './issuer-admin.service.js';
import { OrganizationAdmin } from './organization-admin.service.js';

/** The settings, SCIM tokens and issuer of an organization, for its admins. */
@Module({
  imports: [
    AuditModule,
    DirectoryModule,
    OrganizationIssuersModule,
    OrganizationsModule,
    ScimTokensModule,
  ],
  providers: [IssuerAdmin, OrganizationAdmin],
  exports: [IssuerAdmin, OrganizationAdmin],
})
export class OrganizationAdminModule {}
