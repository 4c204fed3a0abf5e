import { Module } from '@nestjs/common';
import { AdminModule } from '#domain/admin/admin.module.js';
import { AuditCheckpointsController } from './audit-checkpoints.controller.js';
import { AuditLogController } from './audit-log.controller.js';
import { AuditQuestionsController } from './audit-questions.controller.js';
import { ProgramAuditController } from './program-audit.controller.js';

@Module({
  imports: [AdminModule],
  controllers: [
    AuditCheckpointsController,
    AuditLogController,
    AuditQuestionsController,
    ProgramAuditController,
  ],
})
export class AuditLogModule {}
