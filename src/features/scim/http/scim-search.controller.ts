import { Body, Controller, Get, Post, Query, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { Route } from '#platform/http/routing/route.js';
import { Caller, SCIM } from './scim-caller.js';
import type { QueryFields } from '../query/scim-query.js';
import { ScimEverything } from '../resources/scim-everything.service.js';

/** What is asked of users and groups at once, and of the caller themselves. */
@Controller('scim/v2')
@Route(SCIM)
export class ScimSearchController {
  constructor(private readonly everything: ScimEverything) {}

  /** RFC 7644 §3.4.2.1. */
  @Get()
  @Route({ summary: 'Searches users and groups' })
  async list(
    @Caller() caller: ScimActor,
    @Query() fields: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    await this.everything.search(caller, fields, response);
  }

  /** RFC 7644 §3.4.3. */
  @Post('.search')
  @Route({ summary: 'Searches users and groups by POST (RFC 7644 §3.4.3)' })
  async search(
    @Caller() caller: ScimActor,
    @Body() fields: QueryFields,
    @Res() response: Response,
  ): Promise<void> {
    await this.everything.search(caller, fields, response);
  }

  /** RFC 7644 §3.11: a token stands for an identity provider, and not for a person. */
  @Get('Me')
  @Route({ summary: 'Refuses: a SCIM token belongs to no user' })
  me(): never {
    throw new DomainError('not_implemented', 'A SCIM token is nobody in particular.');
  }
}
