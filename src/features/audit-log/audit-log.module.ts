import { Module } from '@nestjs/common';
import { AuditSearchModule } from '#domain/admin/audit-search/audit-search.module.js';
import { AuditLogController } from './audit-log.controller.js';
import { AuditQuestionsController } from './audit-questions.controller.js';

@Module({
  imports: [AuditSearchModule],
  controllers: [AuditLogController, AuditQuestionsController],
})
export class AuditLogModule {}
