import { Body, Controller, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { Route } from '#platform/http/routing/route.js';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import { ScimAnswers } from '../resources/scim-answers.service.js';
import { ScimBulk } from '../bulk/scim-bulk.service.js';
import { Caller, SCIM } from './scim-caller.js';

/** `/scim/v2/Bulk` (RFC 7644 §3.7): many operations for one token of the rate limit. */
@Controller('scim/v2/Bulk')
@Route(SCIM)
export class ScimBulkController {
  constructor(
    private readonly bulk: ScimBulk,
    private readonly answers: ScimAnswers,
  ) {}

  @Post()
  @Route({ summary: 'Runs several operations (RFC 7644 §3.7)' })
  async run(
    @Caller() caller: ScimActor,
    @Body() body: unknown,
    @Res() response: Response,
  ): Promise<void> {
    const outcomes = await this.bulk.run(caller, body);
    const json = {
      schemas: ['urn:ietf:params:scim:api:messages:2.0:BulkResponse'],
      Operations: outcomes,
    };
    this.answers.send(response, 200, JSON.stringify(json));
  }
}
