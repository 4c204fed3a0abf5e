import { Controller, Get, Header, UseGuards } from '@nestjs/common';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';
import { MetricsGuard } from './metrics.guard.js';

@Controller('metrics')
@Route({ tier: 'unlimited', audience: 'api', errors: 'negotiated', hosts: 'any', auth: PUBLIC })
@UseGuards(MetricsGuard)
export class MetricsController {
  constructor(private readonly metrics: ServiceMetrics) {}

  @Get()
  @Route({ summary: 'Counters of the process, for a bearer of SVC_METRICS_BEARER_TOKEN' })
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  scrape(): Promise<string> {
    return this.metrics.scrape();
  }
}
