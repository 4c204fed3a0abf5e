import { Module } from '@nestjs/common';
import { AuditEventsRepository } from './audit-events.repository.js';
import { AuditLog } from './audit.repository.js';
import { KeyEventsRepository } from './key-events.repository.js';

/** What happened, kept; and read by those whom it concerns. */
@Module({
  providers: [AuditEventsRepository, AuditLog, KeyEventsRepository],
  exports: [AuditEventsRepository, AuditLog, KeyEventsRepository],
})
export class AuditModule {}
