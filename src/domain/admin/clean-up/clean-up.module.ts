import { Module } from '@nestjs/common';
import { ScheduleModule } from './scheduler.js';
import { CleanUp } from './clean-up.service.js';

@Module({
  imports: [ScheduleModule.forRoot()],
  providers: [CleanUp],
})
export class CleanUpModule {}
