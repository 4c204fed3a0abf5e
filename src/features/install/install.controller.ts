import { Controller, Get, Inject, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sendEncoded } from '#platform/http/request/encoded-document.js';
import { entityTag, namesTag } from '#platform/http/request/entity-tag.js';
import { Route } from '#platform/http/routing/route.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Views } from '#platform/http/views/views.service.js';
import { commandFile } from './command-file.js';
import { installScript } from './install-script.js';

/**
 * Lets users download the `svc` command: by the page `/install`, the script `/install.sh`, and the
 * file `/static/svc.mjs`.
 */
@Controller()
@Route({ tier: 'general', audience: 'ui', errors: 'negotiated', auth: PUBLIC })
export class InstallController {
  readonly #server: string;

  constructor(
    @Inject(CONFIG) config: Config,
    private readonly views: Views,
  ) {
    this.#server = config.http.baseUrl;
  }

  @Get('install')
  @Route({ errors: 'html', summary: 'Shows how to install the svc command' })
  showPage(@Res() response: Response): void {
    const { sha256 } = commandFile();
    response.type('html').send(this.views.render('install', { server: this.#server, sha256 }));
  }

  @Get('install.sh')
  @Route({ summary: 'The script that installs the svc command' })
  sendScript(@Req() request: Request, @Res() response: Response): void {
    const { sha256 } = commandFile();
    send(request, response, Buffer.from(installScript({ server: this.#server, sha256 })), 'text');
  }

  @Get('static/svc.mjs')
  @Route({ tier: 'unlimited', summary: 'The svc command, one file' })
  sendCommand(@Req() request: Request, @Res() response: Response): void {
    sendEncoded(request, response, commandFile(), 'text/javascript');
  }
}

/** Sends a file with its entity tag, or 304 if the client already has the file. */
function send(request: Request, response: Response, content: Buffer, type: string): void {
  const tag = entityTag(content);
  response.setHeader('ETag', tag);
  if (namesTag(request.get('if-none-match'), tag)) response.status(304).end();
  else response.type(type).send(content);
}
