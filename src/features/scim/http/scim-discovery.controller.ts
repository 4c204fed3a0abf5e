import { Controller, Get, Param, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import {
  resourceTypeDocuments,
  schemaDocuments,
  type ScimDocument,
} from '../language/scim-language.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Route } from '#platform/http/routing/route.js';
import { SCIM } from './resource-endpoint.js';
import { ScimResources } from '../resources/scim-resources.service.js';
import type { QueryFields } from '../query/scim-query.js';
import { listHead, listTail, sendJson } from './scim-response.js';
import { serviceProviderConfig } from './service-provider-config.js';
import { SCIM_ROUTES } from './scim.schemas.js';

/**
 * Serves the documents that tell a SCIM client which features the service supports (RFC 7644 §4).
 */
@Controller('scim/v2')
@Route(SCIM)
export class ScimDiscoveryController {
  constructor(private readonly scimResources: ScimResources) {}

  @Get('ServiceProviderConfig')
  @Route({
    operation: 'getScimConfig',
    summary: 'Shows what the SCIM service supports (RFC 7643 §5)',
    ...SCIM_ROUTES.config,
  })
  config(@Query() query: QueryFields, @Res() response: Response): void {
    refuseFilter(query);
    sendJson(response, 200, JSON.stringify(serviceProviderConfig(this.scimResources.base)));
  }

  @Get('Schemas')
  @Route({
    operation: 'listScimSchemas',
    summary: 'Lists the schemas',
    ...SCIM_ROUTES.discoveryList,
  })
  schemas(@Query() query: QueryFields, @Res() response: Response): void {
    this.#list(response, query, schemaDocuments(this.scimResources.base));
  }

  @Get('Schemas/:id')
  @Route({ operation: 'getScimSchema', summary: 'Shows a schema', ...SCIM_ROUTES.discovery })
  schema(@Param('id') id: string, @Res() response: Response): void {
    this.#one(response, id, schemaDocuments(this.scimResources.base));
  }

  @Get('ResourceTypes')
  @Route({
    operation: 'listScimResourceTypes',
    summary: 'Lists the resource types',
    ...SCIM_ROUTES.discoveryList,
  })
  resourceTypes(@Query() query: QueryFields, @Res() response: Response): void {
    this.#list(response, query, resourceTypeDocuments(this.scimResources.base));
  }

  @Get('ResourceTypes/:id')
  @Route({
    operation: 'getScimResourceType',
    summary: 'Shows a resource type',
    ...SCIM_ROUTES.discovery,
  })
  resourceType(@Param('id') id: string, @Res() response: Response): void {
    this.#one(response, id, resourceTypeDocuments(this.scimResources.base));
  }

  #list(response: Response, query: QueryFields, documents: readonly ScimDocument[]): void {
    refuseFilter(query);
    const head = listHead({
      totalResults: documents.length,
      startIndex: 1,
      nextCursor: undefined,
    });
    const texts = documents.map((document) => JSON.stringify(document));
    const tail = listTail(texts.length);
    sendJson(response, 200, head + texts.join(',') + tail);
  }

  /**
   * Sends the document with the given id. Upper and lower case are equal.
   * @throws DomainError not_found
   */
  #one(response: Response, id: string, documents: readonly ScimDocument[]): void {
    const found = documents.find((one) => asciiLowerCase(one.id) === asciiLowerCase(id));
    if (!found) throw new DomainError('not_found', 'There is no such document.');
    sendJson(response, 200, JSON.stringify(found));
  }
}

/**
 * Refuses a request for discovery documents that has the parameter `filter`.
 * @throws DomainError not_filterable (RFC 7644 §4)
 */
function refuseFilter(query: QueryFields): void {
  if (Object.keys(query).some((name) => asciiLowerCase(name) === 'filter')) {
    throw new DomainError('not_filterable', 'Discovery documents cannot be filtered.');
  }
}
