import { Body, Controller, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { ScimActor } from '#domain/directory/scim-actor.js';
import { Access } from '#platform/http/access/access.js';
import { BodyType } from '#platform/http/body/body-type.js';
import { ScimAnswers } from '../resources/scim-answers.service.js';
import { ScimBulk } from '../bulk/scim-bulk.service.js';
import { Caller } from './scim-caller.js';

/** `/scim/v2/Bulk` (RFC 7644 §3.7): many operations for one token of the rate limit. */
@Controller('scim/v2/Bulk')
@Access({ session: 'provisioner', origin: 'any' })
@BodyType('scim')
export class ScimBulkController {
  constructor(
    private readonly bulk: ScimBulk,
    private readonly answers: ScimAnswers,
  ) {}

  @Post()
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
