import { Body, Controller, Delete, Get, Headers, HttpCode, Param, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { adminOf } from '#domain/directory/members.service.js';
import { OrganizationDomains } from '#domain/admin/organization/organization-domains.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { DELETED_JSON, PREFER, sendDeleted } from '#platform/http/request/preference.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  ADD_DOMAIN,
  DOMAIN_JSON,
  DOMAIN_NAME,
  DOMAINS_JSON,
  domainJson,
  type AddDomain,
  type DomainJson,
} from './domains.schemas.js';

/** `/api/v1/org/domains`: the domains of the organization, each proven by a DNS TXT record. */
@Controller('api/v1/org/domains')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class DomainsController {
  constructor(private readonly organizationDomains: OrganizationDomains) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listDomains',
    summary: 'Lists the domains',
    answers: { 200: DOMAINS_JSON },
    refusals: ['admin_required'],
  })
  async list(@Caller() session: VerifiedSession): Promise<{ readonly domains: DomainJson[] }> {
    const domains = await this.organizationDomains.list(adminOf(session));
    return { domains: domains.map(domainJson) };
  }

  @Post()
  @Route({
    operation: 'addDomain',
    summary: 'Adds a domain, and says which DNS record proves it',
    answers: { 201: DOMAIN_JSON },
    refusals: ['admin_required', 'domain_exists', 'domain_taken', 'limit_reached'],
  })
  @HttpCode(201)
  async add(
    @Caller() session: VerifiedSession,
    @Body({ schema: ADD_DOMAIN }) { domain }: AddDomain,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<DomainJson> {
    const act = { admin: adminOf(session), domain, origin };
    return domainJson(await this.organizationDomains.add(act));
  }

  @Post(':domain/verify')
  @Route({
    operation: 'verifyDomain',
    summary: 'Looks for the DNS record of a domain now',
    answers: { 200: DOMAIN_JSON },
    refusals: [
      'admin_required',
      'not_found',
      'primary_domain',
      'domain_taken',
      'domain_not_proven',
      'dns_unavailable',
    ],
  })
  @HttpCode(200)
  async verify(
    @Caller() session: VerifiedSession,
    @Param({ schema: DOMAIN_NAME }) { domain }: { domain: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<DomainJson> {
    const act = { admin: adminOf(session), domain, origin };
    return domainJson(await this.organizationDomains.verify(act));
  }

  @Delete(':domain')
  @Route({
    operation: 'removeDomain',
    summary: 'Removes a domain, and ends what its users hold',
    answers: { 200: DELETED_JSON, 204: null },
    asks: { headers: PREFER },
    refusals: ['admin_required', 'not_found', 'primary_domain', 'own_account'],
  })
  async remove(
    @Caller() session: VerifiedSession,
    @Param({ schema: DOMAIN_NAME }) { domain }: { domain: string },
    @ClientOrigin() origin: AuditOrigin,
    @Headers('prefer') prefer: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const act = { admin: adminOf(session), domain, origin };
    sendDeleted(response, prefer, { ended: await this.organizationDomains.remove(act) });
  }
}
