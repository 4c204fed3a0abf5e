import { Module } from '@nestjs/common';
import { FallbackController } from './fallback.controller.js';

/** The last of all modules, since routes are tried in the order of their modules. */
@Module({ controllers: [FallbackController] })
export class FallbackModule {}
