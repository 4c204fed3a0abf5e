import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { proofRecord } from '#domain/organization-domains/domain-record.js';
import { stateOf } from '#domain/organization-domains/domain-state.js';
import type { OrganizationDomain } from '#domain/organization-domains/organization-domains.repository.js';
import { OrganizationDomains } from '#domain/organization-domains/organization-domains.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { person } from '../../shell/person.js';
import { endsText } from './ends.js';

/** Serves `/admin/domains`: the domains of an organization, and the record that proves each. */
@Controller('admin/domains')
@Route(PAGE_ROUTE)
export class DomainsPageController {
  constructor(
    private readonly organizationDomains: OrganizationDomains,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required */
  @Get()
  @Route({ summary: 'Shows the domains of the organization' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const domains = await this.organizationDomains.list(admitted.admin);
    const page = { person: person(admitted.session), domains: domains.map(shownDomain) };
    response.type('html').send(this.views.render('org-domains', page));
  }

  /** @throws DomainError admin_required, not_found */
  @Get(':domain')
  @Route({ summary: 'Shows a domain of the organization, its record and what its removal ends' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('domain') name: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const preview = await this.organizationDomains.preview(admitted.admin, name);
    const page = {
      person: person(admitted.session),
      domain: shownDomain(preview.domain),
      isOwn: preview.isOwn,
      ends: endsText(preview.ends),
    };
    response.type('html').send(this.views.render('org-domain', page));
  }
}

/** A domain for a template. */
function shownDomain(found: OrganizationDomain) {
  return {
    name: found.domain,
    isPrimary: found.isPrimary,
    state: stateOf(found),
    failures: found.failures,
    record: found.token === null ? null : proofRecord(found.domain, found.token),
    created: moment(found.createdAt),
    verified: found.verifiedAt && moment(found.verifiedAt),
    checked: found.lastCheckedAt && moment(found.lastCheckedAt),
  };
}
