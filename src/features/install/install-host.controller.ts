import { Controller, Get, Inject, Res } from '@nestjs/common';
import type { Response } from 'express';
import { CONFIG, type Config } from '#platform/config/config.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { hostScript } from './host-script.js';

/**
 * Serves `GET /install-host.sh`, a script that makes a host accept the SSH certificates of this
 * service.
 */
@Controller('install-host.sh')
@Route({ tier: 'general', audience: 'api', errors: 'problem', auth: PUBLIC })
export class InstallHostController {
  readonly #script: string;

  constructor(@Inject(CONFIG) config: Config) {
    this.#script = hostScript(config.http.baseUrl);
  }

  @Get()
  @Route({ summary: 'The script by which a host accepts the SSH certificates of this service' })
  read(@Res() response: Response): void {
    response.type('text/plain').send(this.#script);
  }
}
