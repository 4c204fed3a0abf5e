import { Module } from '@nestjs/common';
import { AuditEventsRepository } from './audit-events.repository.js';
import { AuditLog } from './audit.repository.js';

@Module({
  providers: [AuditEventsRepository, AuditLog],
  exports: [AuditEventsRepository, AuditLog],
})
export class AuditModule {}
