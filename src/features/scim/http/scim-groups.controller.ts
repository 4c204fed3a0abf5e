import {
  Controller,
  Delete,
  Get,
  HttpCode,
  Patch,
  Post,
  Put,
  Res,
  UseFilters,
} from '@nestjs/common';
import type { Response } from 'express';
import { Route } from '#platform/http/routing/route.js';
import { searchFields } from '../query/scim-query.js';
import { ScimResources } from '../resources/scim-resources.service.js';
import { RefusedWrites } from './refused-writes.filter.js';
import {
  Call,
  createResource,
  findResource,
  listResources,
  patchResource,
  replaceResource,
  SCIM,
  type ScimCall,
} from './resource-endpoint.js';
import { SCIM_ROUTES } from './scim.schemas.js';

/** `/scim/v2/Groups`: reads and writes the groups of an organization (RFC 7644 §3). */
@Controller('scim/v2/Groups')
@Route(SCIM)
@UseFilters(RefusedWrites)
export class ScimGroupsController {
  constructor(private readonly scimResources: ScimResources) {}

  @Post()
  @Route({ operation: 'createScimGroup', summary: 'Creates a group', ...SCIM_ROUTES.groups.create })
  create(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return createResource(this.scimResources.groups, call, response);
  }

  @Get()
  @Route({
    admission: 'beside',
    operation: 'listScimGroups',
    summary: 'Lists or searches groups',
    ...SCIM_ROUTES.groups.list,
  })
  list(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return listResources(this.scimResources.groups, call, call.query, response);
  }

  /** Searches groups by a query in the body (RFC 7644 §3.4.3). */
  @Post('.search')
  @Route({
    operation: 'searchScimGroups',
    summary: 'Searches groups by POST (RFC 7644 §3.4.3)',
    ...SCIM_ROUTES.groups.search,
  })
  search(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return listResources(this.scimResources.groups, call, searchFields(call.body), response);
  }

  @Get(':id')
  @Route({
    admission: 'beside',
    operation: 'getScimGroup',
    summary: 'Shows a group',
    ...SCIM_ROUTES.groups.find,
  })
  find(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return findResource(this.scimResources.groups, call, response);
  }

  @Put(':id')
  @Route({
    operation: 'replaceScimGroup',
    summary: 'Replaces a group',
    ...SCIM_ROUTES.groups.replace,
  })
  replace(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return replaceResource(this.scimResources.groups, call, response);
  }

  @Patch(':id')
  @Route({
    operation: 'patchScimGroup',
    summary: 'Changes a group (RFC 7644 §3.5.2)',
    ...SCIM_ROUTES.groups.patch,
  })
  patch(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return patchResource(this.scimResources.groups, call, response);
  }

  @Delete(':id')
  @HttpCode(204)
  @Route({ operation: 'removeScimGroup', summary: 'Removes a group', ...SCIM_ROUTES.groups.remove })
  async remove(@Call() { caller, id, ifMatch }: ScimCall): Promise<void> {
    await this.scimResources.groups.remove(caller, id, ifMatch);
  }
}
