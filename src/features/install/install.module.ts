import { Module, type OnModuleInit } from '@nestjs/common';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { InstallHostController } from './install-host.controller.js';
import { InstallController } from './install.controller.js';

/**
 * Serves the files that set up other machines: /install-host.sh, /install, /install.sh and
 * /static/svc.mjs. They are public and contain no secret.
 */
@Module({ imports: [HttpModule], controllers: [InstallHostController, InstallController] })
export class InstallModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
  }
}
