import { Controller, Get, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import { proofRecord } from '#domain/organizations/domains/domain-record.js';
import { stateOf } from '#domain/organizations/domains/domain-state.js';
import type { OrganizationDomain } from '#domain/organizations/domains/organization-domains.repository.js';
import { OrganizationDomains } from '#domain/admin/organization/organization-domains.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';
import { endsText } from './ends.js';

/**
 * Serves `/admin/domains`: the domains of an organization, and the DNS record that proves each of
 * them.
 */
@Controller('admin/domains')
@Route(PAGE_ROUTE)
export class DomainsPageController {
  constructor(
    private readonly organizationDomains: OrganizationDomains,
    private readonly views: Views,
  ) {}

  /**
   * Lists the domains for an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the domains of the organization' })
  async list(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-domains', async (admin) => {
      const domains = await this.organizationDomains.list(admin);
      return { domains: domains.map(shownDomain) };
    });
  }

  /**
   * Shows a domain to an admin.
   * @throws DomainError admin_required, not_found
   */
  @Get(':domain')
  @Route({ summary: 'Shows a domain of the organization, its record and what its removal ends' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('domain') name: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-domain', async (admin) => {
      const preview = await this.organizationDomains.preview(admin, name);
      return {
        domain: shownDomain(preview.domain),
        isOwn: preview.isOwn,
        ends: endsText(preview.ends),
      };
    });
  }
}

/**
 * Returns the facts of a domain that a template shows, such as its state and the DNS record that
 * proves it.
 */
function shownDomain(found: OrganizationDomain) {
  return {
    name: found.domain,
    isPrimary: found.isPrimary,
    state: stateOf(found),
    failures: found.failures,
    proof: found.proof,
    record:
      found.token === null || found.proof === 'operator'
        ? null
        : proofRecord(found.domain, found.token),
    created: moment(found.createdAt),
    verified: found.verifiedAt && moment(found.verifiedAt),
    checked: found.lastCheckedAt && moment(found.lastCheckedAt),
  };
}
