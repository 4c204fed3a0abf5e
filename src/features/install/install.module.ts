import { Module } from '@nestjs/common';
import { InstallHostController } from './install-host.controller.js';

/** Serves the scripts that set up other machines: /install-host.sh. Public; the scripts have no secret. */
@Module({ controllers: [InstallHostController] })
export class InstallModule {}
