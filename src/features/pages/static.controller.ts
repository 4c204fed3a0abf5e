import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import { sendEncoded } from '#platform/http/request/encoded-document.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { readStaticFiles } from './shell/static-files.js';

/** Serves `GET /static/{name}`: style sheets, scripts and the icon of the pages. */
@Controller('static')
@Route({ tier: 'unlimited', audience: 'ui', errors: 'negotiated', auth: PUBLIC })
export class StaticController {
  readonly #files = readStaticFiles(new URL('static/', import.meta.url));

  @Get(':name')
  @Route({ summary: 'Sends a style sheet, a script or an image' })
  read(@Param('name') name: string, @Req() request: Request, @Res() response: Response): void {
    const file = this.#files.get(name);
    if (!file) throw new DomainError('not_found', 'There is nothing here.');
    sendEncoded(request, response, file, file.type);
  }
}
