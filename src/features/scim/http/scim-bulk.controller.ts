import { Controller, Post, Res, UseFilters } from '@nestjs/common';
import type { Response } from 'express';
import { Route } from '#platform/http/routing/route.js';
import { runBulk } from '../bulk/bulk-run.js';
import { ScimResources } from '../resources/scim-resources.service.js';
import { Call, SCIM, type ScimCall } from './resource-endpoint.js';
import { sendJson } from './scim-response.js';
import { RefusedWrites } from './refused-writes.filter.js';
import { SCIM_ROUTES } from './scim.schemas.js';

/**
 * `/scim/v2/Bulk` (RFC 7644 §3.7): many operations that count as one request for the rate limit.
 */
@Controller('scim/v2/Bulk')
@Route(SCIM)
@UseFilters(RefusedWrites)
export class ScimBulkController {
  constructor(private readonly scimResources: ScimResources) {}

  @Post()
  @Route({
    operation: 'runScimBulk',
    summary: 'Runs several operations (RFC 7644 §3.7)',
    ...SCIM_ROUTES.bulk,
  })
  async run(@Call() { caller, body }: ScimCall, @Res() response: Response): Promise<void> {
    const json = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkResponse'],
      Operations: await runBulk(this.scimResources, caller, body),
    };
    sendJson(response, 200, JSON.stringify(json));
  }
}
