import {
  Module,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { Clock } from '#platform/clock/clock.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { AuditLog } from './audit.repository.js';
import { FeedWatch } from './feed/feed-watch.js';

@Module({
  providers: [AuditLog],
  exports: [AuditLog],
})
export class AuditModule implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly feedWatch: FeedWatch;

  constructor(dataSource: DataSource, clock: Clock) {
    this.feedWatch = new FeedWatch(dataSource, clock);
  }

  onApplicationBootstrap(): void {
    this.feedWatch.start();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.feedWatch.stop();
  }
}
