import { Controller, Get, Header, Inject, Req } from '@nestjs/common';
import type { Request } from 'express';
import { equalInConstantTime } from '#platform/crypto/opaque-token.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { bearerSecret } from '#platform/http/access/presented-token.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { PUBLIC } from '#platform/http/routing/route-policy.js';
import { Route } from '#platform/http/routing/route.js';

/**
 * The injection token of the bearer token for the metrics, the value of SVC_METRICS_BEARER_TOKEN.
 */
export const METRICS_TOKEN = Symbol('metrics token');

/** Serves `GET /metrics` for a caller that presents SVC_METRICS_BEARER_TOKEN. */
@Controller('metrics')
@Route({ tier: 'unlimited', audience: 'api', errors: 'negotiated', hosts: 'any', auth: PUBLIC })
export class MetricsController {
  constructor(
    private readonly metrics: ServiceMetrics,
    @Inject(METRICS_TOKEN) private readonly token: string,
  ) {}

  /**
   * Returns the metrics of this process, or their sums over all workers, in the text format of
   * Prometheus.
   * @throws DomainError unauthenticated without the bearer token
   */
  @Get()
  @Route({ summary: 'Counters of the process, for a bearer of SVC_METRICS_BEARER_TOKEN' })
  @Header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
  scrape(@Req() request: Request): Promise<string> {
    const presented = bearerSecret(request);
    if (presented === undefined || !equalInConstantTime(presented, this.token)) {
      throw new DomainError('unauthenticated', 'Present the metrics token as a Bearer token.');
    }
    return this.metrics.scrape();
  }
}
