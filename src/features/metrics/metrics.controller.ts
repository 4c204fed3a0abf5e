import { Controller, Get, Header, UseGuards } from '@nestjs/common';
import { Public } from '#platform/http/access/access.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { MetricsGuard } from './metrics.guard.js';

@Controller('metrics')
@Public() // no session opens it: its own token does
@UseGuards(MetricsGuard)
export class MetricsController {
  constructor(private readonly metrics: ServiceMetrics) {}

  @Get()
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  scrape(): Promise<string> {
    return this.metrics.scrape();
  }
}
