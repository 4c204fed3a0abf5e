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

/** `/scim/v2/Users`: reads and writes the users of an organization (RFC 7644 §3). */
@Controller('scim/v2/Users')
@Route(SCIM)
@UseFilters(RefusedWrites)
export class ScimUsersController {
  constructor(private readonly scimResources: ScimResources) {}

  @Post()
  @Route({ operation: 'createScimUser', summary: 'Creates a user', ...SCIM_ROUTES.users.create })
  create(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return createResource(this.scimResources.users, call, response);
  }

  @Get()
  @Route({
    admission: 'beside',
    operation: 'listScimUsers',
    summary: 'Lists or searches users',
    ...SCIM_ROUTES.users.list,
  })
  list(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return listResources(this.scimResources.users, call, call.query, response);
  }

  /** Searches users by a query in the body (RFC 7644 §3.4.3). */
  @Post('.search')
  @Route({
    operation: 'searchScimUsers',
    summary: 'Searches users by POST (RFC 7644 §3.4.3)',
    ...SCIM_ROUTES.users.search,
  })
  search(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return listResources(this.scimResources.users, call, searchFields(call.body), response);
  }

  @Get(':id')
  @Route({
    admission: 'beside',
    operation: 'getScimUser',
    summary: 'Shows a user',
    ...SCIM_ROUTES.users.find,
  })
  find(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return findResource(this.scimResources.users, call, response);
  }

  @Put(':id')
  @Route({ operation: 'replaceScimUser', summary: 'Replaces a user', ...SCIM_ROUTES.users.replace })
  replace(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return replaceResource(this.scimResources.users, call, response);
  }

  @Patch(':id')
  @Route({
    operation: 'patchScimUser',
    summary: 'Changes a user (RFC 7644 §3.5.2)',
    ...SCIM_ROUTES.users.patch,
  })
  patch(@Call() call: ScimCall, @Res() response: Response): Promise<void> {
    return patchResource(this.scimResources.users, call, response);
  }

  @Delete(':id')
  @HttpCode(204)
  @Route({
    goesFirst: true,
    operation: 'removeScimUser',
    summary: 'Removes a user',
    ...SCIM_ROUTES.users.remove,
  })
  async remove(@Call() { caller, id, ifMatch }: ScimCall): Promise<void> {
    await this.scimResources.users.remove(caller, id, ifMatch);
  }
}
