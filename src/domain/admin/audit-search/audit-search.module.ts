import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { AuditEvents } from './audit-events.service.js';
import { SavedQuestions } from './saved-questions.service.js';

@Module({
  imports: [AuditModule, DirectoryModule],
  providers: [AuditEvents, SavedQuestions],
  exports: [AuditEvents, SavedQuestions],
})
export class AuditSearchModule {}
