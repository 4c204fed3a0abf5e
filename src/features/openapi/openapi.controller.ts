import { Controller, Get, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ApiDocument } from '#platform/http/openapi/api-document.service.js';
import { sendEncoded } from '#platform/http/request/encoded-document.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';

/** `GET /openapi.json`: the description of the API for programs. */
@Controller('openapi.json')
@Route({ tier: 'unlimited', audience: 'api', errors: 'problem', auth: PUBLIC })
export class OpenApiController {
  constructor(private readonly apiDocument: ApiDocument) {}

  @Get()
  @Route({ summary: 'Describes the API (OpenAPI 3.1)' })
  async read(@Req() request: Request, @Res() response: Response): Promise<void> {
    const { encoded } = await this.apiDocument.served();
    sendEncoded(request, response, encoded, 'application/json');
  }
}
