import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { CleanUp } from './clean-up.service.js';
import { ExpiredRowsRepository } from './expired-rows.repository.js';

/** The rows that nobody needs any more: expired ones of every table, and audit events past their retention. */
@Module({
  imports: [ScheduleModule.forRoot()],
  providers: [CleanUp, ExpiredRowsRepository],
})
export class CleanUpModule {}
