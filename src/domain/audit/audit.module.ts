import { Module } from '@nestjs/common';
import { AuditLog } from './audit.repository.js';

@Module({
  providers: [AuditLog],
  exports: [AuditLog],
})
export class AuditModule {}
