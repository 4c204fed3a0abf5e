import { Module } from '@nestjs/common';
import { AuditLog } from './audit.repository.js';

/** What happened, kept. */
@Module({ providers: [AuditLog], exports: [AuditLog] })
export class AuditModule {}
