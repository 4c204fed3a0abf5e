import {
  Module,
  type DynamicModule,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { Tour } from '@svc/demo/tour';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { TourController } from './tour.controller.js';

/**
 * Serves the tour at `/demo`. When the application stops, it also stops what the tour has started.
 * Only the demo contains this module.
 */
@Module({})
export class TourModule implements OnModuleInit, OnApplicationShutdown {
  static forRoot(tour: Tour): DynamicModule {
    return {
      module: TourModule,
      imports: [HttpModule],
      controllers: [TourController],
      providers: [{ provide: Tour, useValue: tour }],
    };
  }

  constructor(
    private readonly views: Views,
    private readonly tour: Tour,
  ) {}

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
  }

  onApplicationShutdown(): Promise<void> {
    return this.tour.close();
  }
}
