import { Module, type DynamicModule } from '@nestjs/common';
import { METRICS_TOKEN, MetricsController } from './metrics.controller.js';

/**
 * Serves GET /metrics: the metrics of this process, or their sums over all workers. Without
 * SVC_METRICS_BEARER_TOKEN the path does not exist. This module counts nothing itself: code that
 * runs before the router counts the requests, and the other features count their events.
 */
@Module({})
export class MetricsModule {
  static forRoot({ bearerToken }: { readonly bearerToken: string | undefined }): DynamicModule {
    return {
      module: MetricsModule,
      controllers: bearerToken === undefined ? [] : [MetricsController],
      providers:
        bearerToken === undefined ? [] : [{ provide: METRICS_TOKEN, useValue: bearerToken }],
    };
  }
}
