import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { CleanUp } from './clean-up.service.js';

@Module({
  imports: [ScheduleModule.forRoot()],
  providers: [CleanUp],
})
export class CleanUpModule {}
