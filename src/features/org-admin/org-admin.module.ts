import { Module } from '@nestjs/common';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AdminModule } from '#domain/admin/admin.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { AccessController } from './access/access.controller.js';
import { MadeTargetsController } from './access/made-targets.controller.js';
import { ApiTokensController } from './api-tokens.controller.js';
import { DomainsController } from './domains/domains.controller.js';
import { EnrollmentPassesController } from './members/enrollment-passes.controller.js';
import { EventReceiversController } from './event-receivers.controller.js';
import { IssuerController } from './issuer/issuer.controller.js';
import { KeysOfMembersController } from './keys/keys.controller.js';
import { MemberActsController } from './members/member-acts.controller.js';
import { MemberTiesController } from './members/member-ties.controller.js';
import { MembersController } from './members/members.controller.js';
import { OrganizationController } from './organization.controller.js';
import { ProgramReadsController } from './program-reads.controller.js';
import { ProgramRotationController } from './program-rotation.controller.js';
import { ProvidersController } from './providers/providers.controller.js';
import { ScimTokensController } from './scim-tokens.controller.js';
import { SecretsToConfirmController } from './secrets/secrets-to-confirm.controller.js';

@UnmatchedPaths({ '/api/v1/org/*': { tier: 'general' }, '/api/v1/programs/*': { tier: 'general' } })
@Module({
  imports: [AuditModule, AdminModule, DirectoryModule, KeysModule, OAuthModule],
  controllers: [
    AccessController,
    ApiTokensController,
    MadeTargetsController,
    DomainsController,
    EnrollmentPassesController,
    EventReceiversController,
    IssuerController,
    KeysOfMembersController,
    MemberActsController,
    MemberTiesController,
    MembersController,
    OrganizationController,
    ProgramReadsController,
    ProgramRotationController,
    ProvidersController,
    ScimTokensController,
    SecretsToConfirmController,
  ],
})
export class OrgAdminModule {}
