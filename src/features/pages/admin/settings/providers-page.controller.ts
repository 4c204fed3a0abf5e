import { Controller, Get, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  OrganizationProviders,
  type OrganizationProvider,
} from '#domain/admin/organization/organization-providers.service.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import { Views } from '#platform/http/views/views.service.js';
import { PAGE_ROUTE } from '../../shell/admission.js';
import { moment } from '../../shell/moment.js';
import { showToAdmin } from '../../shell/show-page.js';
import { endsText } from './ends.js';

/** Serves `/admin/providers`: the identity providers through which members sign in. */
@Controller('admin/providers')
@Route(PAGE_ROUTE)
export class ProvidersPageController {
  constructor(
    private readonly organizationProviders: OrganizationProviders,
    private readonly views: Views,
  ) {}

  /**
   * Lists the identity providers for an admin.
   * @throws DomainError admin_required
   */
  @Get()
  @Route({ summary: 'Shows the identity providers of the organization' })
  async list(@Caller() caller: LiveSession | undefined, @Res() response: Response): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-providers', async (admin) => {
      const { providers, available } = await this.organizationProviders.list(admin);
      return {
        providers: providers.map((one) => ({ ...shownProvider(one), users: one.users })),
        available: available.map(({ slug, name, issuer, tenancy }) => ({
          slug,
          name,
          issuer,
          tenants: tenancy.kind === 'one' ? null : tenancy.kind,
        })),
      };
    });
  }

  /**
   * Shows an identity provider to an admin.
   * @throws DomainError admin_required, not_found
   */
  @Get(':id')
  @Route({ summary: 'Shows an identity provider of the organization and what its withdrawal ends' })
  async show(
    @Caller() caller: LiveSession | undefined,
    @Param('id') id: string,
    @Res() response: Response,
  ): Promise<void> {
    await showToAdmin(this.views, { caller, response }, 'org-provider', async (admin) => {
      const preview = await this.organizationProviders.preview(admin, id);
      return {
        provider: shownProvider(preview.provider),
        obstacle: preview.obstacle,
        ends: endsText(preview.ends),
      };
    });
  }
}

/**
 * Returns the facts of an identity provider that a template shows. `name` is null if the service is
 * not configured for the provider any more.
 */
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
