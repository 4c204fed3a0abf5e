import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Response } from 'express';
import { recordScimRefusals } from '#domain/directory/scim-tokens/record-scim-refusals.js';
import type { Provisioner } from '#domain/sessions/session-access-policy.service.js';
import { TenantWork } from '#platform/database/tenants/tenant-work.js';
import type { AdmittedRequest } from '#platform/http/access/caller.js';
import { refusalBefore } from '#platform/http/access/refusal-before.js';
import { asDomainError } from '#platform/http/errors/as-domain-error.js';
import { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import { originOf } from '#platform/http/request/client-origin.js';
import { refusalOf } from '../resources/refused-writes.js';

const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/**
 * Records refused SCIM writes before it renders their error. Admins must see that a change in the
 * directory of their identity provider had no effect in this service.
 */
@Catch()
export class RefusedWrites implements ExceptionFilter {
  constructor(
    private readonly tenantWork: TenantWork,
    private readonly errorRenderer: ErrorRenderer,
  ) {}

  async catch(thrown: unknown, host: ArgumentsHost): Promise<void> {
    const http = host.switchToHttp();
    const request = http.getRequest<AdmittedRequest>();
    const error = asDomainError(await refusalBefore(thrown, request));
    const { method, path } = request;
    const session = request.session as Provisioner | undefined;
    const below = path.replace(/^\/scim\/v2/, '');
    const isWrite = WRITES.has(method) && !path.endsWith('/.search');
    const refusal = isWrite ? refusalOf(method, below, error) : undefined;
    if (session && refusal) {
      const actor = { ...session, origin: originOf(request) };
      await recordScimRefusals(this.tenantWork, actor, [refusal]);
    }
    this.errorRenderer.render(error, request, http.getResponse<Response>());
  }
}
