import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ScimTokensModule } from '#domain/scim-tokens/scim-tokens.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { AuditEventsController } from './audit-events.controller.js';
import { AuditEvents } from './audit-events.service.js';
import { MembersController } from './members.controller.js';
import { OrganizationController } from './organization.controller.js';
import { ChangeOrganization } from './change-organization.service.js';
import { ScimTokensController } from './scim-tokens.controller.js';
import { ScimTokens } from './scim-tokens.service.js';

/**
 * `/api/v1/org/*`: what the admins of an organization do with it: its people, the tokens of its identity
 * provider, its audit log. For the cookie
 * session of an admin, or a token of svc-cli with the scope `svc:admin`. Everything is the caller's own organization's;
 * what is another's is not there: 404.
 */
@UnmatchedPaths({ '/api/v1/org/*': { tier: 'general' } })
@Module({
  imports: [AuditModule, OrganizationsModule, ScimTokensModule, DirectoryModule],
  controllers: [
    AuditEventsController,
    MembersController,
    OrganizationController,
    ScimTokensController,
  ],
  providers: [AuditEvents, ChangeOrganization, ScimTokens],
})
export class OrgAdminModule {}
