import {
  Body,
  Controller,
  Delete,
  Get,
  Headers,
  HttpCode,
  Param,
  Patch,
  Post,
  Put,
  Query,
  Res,
} from '@nestjs/common';
import type { Response } from 'express';
import { Route } from '#platform/http/routing/route.js';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import { GROUP_SCHEMA } from '../schema/schemas.js';
import { GroupAnswers } from '../resources/group-answers.service.js';
import { Caller, SCIM } from './scim-caller.js';
import { ScimGroups } from '../resources/scim-groups.service.js';
import { readProjection, readQuery, type QueryFields } from '../query/scim-query.js';

/** `/scim/v2/Groups` (RFC 7644 §3). */
@Controller('scim/v2/Groups')
@Route(SCIM)
export class ScimGroupsController {
  constructor(
    private readonly groups: ScimGroups,
    private readonly answers: GroupAnswers,
  ) {}

  @Post()
  @Route({ summary: 'Creates a group' })
  async create(
    @Caller() caller: ScimActor,
    @Body() body: unknown,
    @Query() query: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, GROUP_SCHEMA);
    await this.answers.one(
      response,
      caller,
      201,
      await this.groups.create(caller, body),
      projection,
    );
  }

  @Get()
  @Route({ summary: 'Lists or searches groups' })
  async list(
    @Caller() caller: ScimActor,
    @Query() fields: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    const query = readQuery(fields, GROUP_SCHEMA);
    const page = await this.groups.search(caller, query.search);
    await this.answers.list(response, caller, page, query);
  }

  /** RFC 7644 §3.4.3: the same, asked for in a body. */
  @Post('.search')
  @Route({ summary: 'Searches groups by POST (RFC 7644 §3.4.3)' })
  search(
    @Caller() caller: ScimActor,
    @Body() fields: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    return this.list(caller, fields, response);
  }

  @Get(':id')
  @Route({ summary: 'Shows a group' })
  async find(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Query() query: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, GROUP_SCHEMA);
    await this.answers.one(response, caller, 200, await this.groups.find(caller, id), projection);
  }

  @Put(':id')
  @Route({ summary: 'Replaces a group' })
  async replace(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Body() body: unknown,
    @Query() query: QueryFields,
    @Headers('if-match') ifMatch: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, GROUP_SCHEMA);
    const group = await this.groups.replace(caller, id, body, ifMatch);
    await this.answers.one(response, caller, 200, group, projection);
  }

  /** 204 where the group is large and nothing in particular was asked for. */
  @Patch(':id')
  @Route({ summary: 'Changes a group (RFC 7644 §3.5.2)' })
  async patch(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Body() body: unknown,
    @Query() query: QueryFields,
    @Headers('if-match') ifMatch: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, GROUP_SCHEMA);
    const group = await this.groups.patch(caller, id, body, ifMatch);
    await this.answers.patched(response, caller, group, projection);
  }

  @Delete(':id')
  @Route({ summary: 'Removes a group' })
  @HttpCode(204)
  async remove(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    await this.groups.remove(caller, id, ifMatch);
  }
}
