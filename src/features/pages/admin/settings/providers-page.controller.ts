import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import {
  OrganizationProviders,
  type OrganizationProvider,
} from '#domain/organization-providers/organization-providers.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { admitAdmin, PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { person } from '../../shell/person.js';
import { endsText } from './ends.js';

/** Serves `/admin/providers`: the identity providers through which members sign in. */
@Controller('admin/providers')
@Route(PAGE_ROUTE)
export class ProvidersPageController {
  constructor(
    private readonly organizationProviders: OrganizationProviders,
    private readonly views: Views,
  ) {}

  /** @throws DomainError admin_required */
  @Get()
  @Route({ summary: 'Shows the identity providers of the organization' })
  async list(
    @Caller() caller: LiveSession | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const { providers, available } = await this.organizationProviders.list(admitted.admin);
    const page = {
      person: person(admitted.session),
      providers: providers.map((one) => ({ ...shownProvider(one), users: one.users })),
      available: available.map(({ slug, name, issuer, tenancy }) => ({
        slug,
        name,
        issuer,
        tenants: tenancy.kind === 'one' ? null : tenancy.kind,
      })),
    };
    response.type('html').send(this.views.render('org-providers', page));
  }

  /** @throws DomainError admin_required, not_found */
  @Get(':id')
  @Route({ summary: 'Shows an identity provider of the organization and what its withdrawal ends' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const admitted = admitAdmin(caller, request, response);
    if (!admitted) return;
    const preview = await this.organizationProviders.preview(admitted.admin, id);
    const page = {
      person: person(admitted.session),
      provider: shownProvider(preview.provider),
      obstacle: preview.obstacle,
      ends: endsText(preview.ends),
    };
    response.type('html').send(this.views.render('org-provider', page));
  }
}

/** A provider for a template. */
function shownProvider(provider: Omit<OrganizationProvider, 'users'>) {
  const { id, configured, issuer, tenant, founding, createdAt } = provider;
  return {
    id,
    name: configured?.name ?? null,
    issuer,
    tenant,
    founding,
    added: moment(createdAt),
  };
}
