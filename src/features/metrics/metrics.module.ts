import { Module, type DynamicModule } from '@nestjs/common';
import { MetricsController } from './metrics.controller.js';
import { METRICS_TOKEN, MetricsGuard } from './metrics.guard.js';

/**
 * GET /metrics: the counters of this process, for whoever presents SVC_METRICS_BEARER_TOKEN. Without one there is no
 * such path. What is counted is counted elsewhere: requests at the edge, events by the features they happen in.
 */
@Module({})
export class MetricsModule {
  static forRoot({ bearerToken }: { readonly bearerToken: string | undefined }): DynamicModule {
    return {
      module: MetricsModule,
      controllers: bearerToken === undefined ? [] : [MetricsController],
      providers:
        bearerToken === undefined
          ? []
          : [MetricsGuard, { provide: METRICS_TOKEN, useValue: bearerToken }],
    };
  }
}
