import { Body, Controller, Delete, Get, HttpCode, Param, Post } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { adminOf } from '#domain/directory/members.service.js';
import { OrganizationProviders } from '#domain/admin/organization/organization-providers.service.js';
import { ADMIN_READS, ADMIN_WRITES } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { Caller } from '#platform/http/access/caller.js';
import { Route } from '#platform/http/routing/route.js';
import {
  ALLOW_PROVIDER,
  availableProviderJson,
  ORGANIZATION_PROVIDER_JSON,
  organizationProviderJson,
  PROVIDER_ID,
  PROVIDERS_JSON,
  WITHDRAWAL_JSON,
  withdrawalJson,
  type AllowProvider,
  type AvailableProviderJson,
  type OrganizationProviderJson,
  type WithdrawalJson,
} from './providers.schemas.js';

/** `/api/v1/org/providers`: the identity providers that the organization accepts. */
@Controller('api/v1/org/providers')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: ADMIN_WRITES })
export class ProvidersController {
  constructor(private readonly organizationProviders: OrganizationProviders) {}

  @Get()
  @Route({
    auth: ADMIN_READS,
    operation: 'listProviders',
    summary: 'Lists the identity providers',
    answers: { 200: PROVIDERS_JSON },
    refusals: ['admin_required'],
  })
  async list(@Caller() session: VerifiedSession): Promise<{
    readonly providers: OrganizationProviderJson[];
    readonly available: AvailableProviderJson[];
  }> {
    const { providers, available } = await this.organizationProviders.list(adminOf(session));
    return {
      providers: providers.map(organizationProviderJson),
      available: available.map(availableProviderJson),
    };
  }

  @Post()
  @Route({
    operation: 'allowProvider',
    summary: 'Allows an identity provider',
    answers: { 201: ORGANIZATION_PROVIDER_JSON },
    refusals: ['admin_required', 'unknown_provider', 'already_allowed', 'limit_reached'],
  })
  @HttpCode(201)
  async allow(
    @Caller() session: VerifiedSession,
    @Body({ schema: ALLOW_PROVIDER }) { provider, tenant }: AllowProvider,
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<OrganizationProviderJson> {
    const act = { admin: adminOf(session), origin };
    return organizationProviderJson(await this.organizationProviders.allow(act, provider, tenant));
  }

  @Delete(':id')
  @Route({
    operation: 'withdrawProvider',
    summary: 'Withdraws an identity provider',
    answers: { 200: WITHDRAWAL_JSON },
    refusals: ['admin_required', 'not_found', 'own_provider', 'last_provider'],
  })
  async withdraw(
    @Caller() session: VerifiedSession,
    @Param({ schema: PROVIDER_ID }) { id }: { id: string },
    @ClientOrigin() origin: AuditOrigin,
  ): Promise<WithdrawalJson> {
    const act = { admin: adminOf(session), origin };
    return withdrawalJson(await this.organizationProviders.withdraw(act, id));
  }
}
