import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { HttpModule } from '#platform/http/http.module.js';
import { HealthController } from './health.controller.js';

/** Serves /health and /health/ready, by @nestjs/terminus. */
@Module({
  imports: [HttpModule, TerminusModule.forRoot({ logger: false })],
  controllers: [HealthController],
})
export class HealthModule {}
