import { Body, Controller, Get, Patch } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { OrganizationSettings } from '#domain/organizations/organizations.repository.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { OrganizationAdmin } from '#domain/organization-admin/organization-admin.service.js';
import { CHANGE_ORGANIZATION, type OrganizationChange } from './organization.schemas.js';

/** `/api/v1/org`: the settings of the organization. */
@Controller('api/v1/org')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class OrganizationController {
  constructor(private readonly organizationAdmin: OrganizationAdmin) {}

  @Get()
  @Route({ auth: ADMIN_READS, summary: 'Shows the settings of the organization' })
  show(@Caller() session: VerifiedSession): Promise<OrganizationSettings> {
    return this.organizationAdmin.show(adminOf(session));
  }

  @Patch()
  @Route({ summary: 'Changes the settings of the organization' })
  change(
    @Caller() session: VerifiedSession,
    @Body({ schema: CHANGE_ORGANIZATION }) change: OrganizationChange,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<OrganizationSettings> {
    return this.organizationAdmin.change(adminOf(session), change, origin);
  }
}
