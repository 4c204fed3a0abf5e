import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { AuditLogController } from './audit-log.controller.js';
import { AuditEvents } from './audit-log.service.js';

@Module({
  imports: [AuditModule, DirectoryModule],
  controllers: [AuditLogController],
  providers: [AuditEvents],
})
export class AuditLogModule {}
