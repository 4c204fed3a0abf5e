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
import { USER_SCHEMA } from '../schema/schemas.js';
import { Caller, SCIM } from './scim-caller.js';
import { readProjection, readQuery, type QueryFields } from '../query/scim-query.js';
import { ScimUsers } from '../resources/scim-users.service.js';
import { UserAnswers } from '../resources/user-answers.service.js';

/** `/scim/v2/Users` (RFC 7644 §3). */
@Controller('scim/v2/Users')
@Route(SCIM)
export class ScimUsersController {
  constructor(
    private readonly users: ScimUsers,
    private readonly answers: UserAnswers,
  ) {}

  @Post()
  @Route({ summary: 'Creates a user' })
  async create(
    @Caller() caller: ScimActor,
    @Body() body: unknown,
    @Query() query: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, USER_SCHEMA);
    this.answers.one(response, 201, await this.users.create(caller, body), projection);
  }

  @Get()
  @Route({ summary: 'Lists or searches users' })
  async list(
    @Caller() caller: ScimActor,
    @Query() fields: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    const query = readQuery(fields, USER_SCHEMA);
    const page = await this.users.search(caller, query.search);
    await this.answers.list(response, caller, page, query);
  }

  /** RFC 7644 §3.4.3: the same, asked for in a body. */
  @Post('.search')
  @Route({ summary: 'Searches users by POST (RFC 7644 §3.4.3)' })
  search(
    @Caller() caller: ScimActor,
    @Body() fields: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    return this.list(caller, fields, response);
  }

  @Get(':id')
  @Route({ summary: 'Shows a user' })
  async find(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Query() query: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, USER_SCHEMA);
    const user = await this.users.find(caller, id);
    this.answers.one(response, 200, user, projection);
  }

  @Put(':id')
  @Route({ summary: 'Replaces a user' })
  async replace(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Body() body: unknown,
    @Query() query: QueryFields,
    @Headers('if-match') ifMatch: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, USER_SCHEMA);
    const user = await this.users.replace(caller, id, body, ifMatch);
    this.answers.one(response, 200, user, projection);
  }

  @Patch(':id')
  @Route({ summary: 'Changes a user (RFC 7644 §3.5.2)' })
  async patch(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Body() body: unknown,
    @Query() query: QueryFields,
    @Headers('if-match') ifMatch: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const projection = readProjection(query, USER_SCHEMA);
    const user = await this.users.patch(caller, id, body, ifMatch);
    this.answers.one(response, 200, user, projection);
  }

  @Delete(':id')
  @Route({ summary: 'Removes a user' })
  @HttpCode(204)
  async remove(
    @Caller() caller: ScimActor,
    @Param('id') id: string,
    @Headers('if-match') ifMatch: string | undefined,
  ): Promise<void> {
    await this.users.remove(caller, id, ifMatch);
  }
}
