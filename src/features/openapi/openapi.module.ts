import { Module } from '@nestjs/common';
import { HttpModule } from '#platform/http/http.module.js';
import { OpenApiController } from './openapi.controller.js';

@Module({ imports: [HttpModule], controllers: [OpenApiController] })
export class OpenApiModule {}
