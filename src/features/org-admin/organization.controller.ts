import { Body, Controller, Get, Headers, Patch, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { OrganizationSettings } from '#domain/organizations/organizations.repository.js';
import { adminOf } from '#domain/directory/members.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { assertMatches, IF_MATCH, jsonTag } from '#platform/http/request/entity-tag.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { OrganizationAdmin } from '#domain/admin/organization/organization-admin.service.js';
import {
  CHANGE_ORGANIZATION,
  ORGANIZATION_JSON,
  type OrganizationChange,
} from './organization.schemas.js';

/** `/api/v1/org`: shows and changes the settings of the organization. */
@Controller('api/v1/org')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class OrganizationController {
  constructor(private readonly organizationAdmin: OrganizationAdmin) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'getOrganization',
    summary: 'Shows the settings of the organization',
    answers: { 200: ORGANIZATION_JSON },
    refusals: ['admin_required'],
  })
  async show(
    @Caller() session: VerifiedSession,
    @Res({ passthrough: true }) response: Response,
  ): Promise<OrganizationSettings> {
    const settings = await this.organizationAdmin.show(adminOf(session));
    response.setHeader('ETag', jsonTag(settings));
    return settings;
  }

  @Patch()
  @Route({
    operation: 'changeOrganization',
    summary: 'Changes the settings of the organization',
    answers: { 200: ORGANIZATION_JSON },
    refusals: ['admin_required', 'precondition_failed'],
    asks: { headers: IF_MATCH },
  })
  async change(
    @Caller() session: VerifiedSession,
    @Body({ schema: CHANGE_ORGANIZATION }) change: OrganizationChange,
    @ClientOrigin() origin: AuditOrigin,
    @Headers('if-match') ifMatch: string | undefined,
    @Res({ passthrough: true }) response: Response,
  ): Promise<OrganizationSettings> {
    const settings = await this.organizationAdmin.change(
      adminOf(session),
      change,
      origin,
      (current) => assertMatches(ifMatch, jsonTag(current)),
    );
    response.setHeader('ETag', jsonTag(settings));
    return settings;
  }
}
