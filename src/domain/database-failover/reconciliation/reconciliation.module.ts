import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { RecentEnds } from './recent-ends.js';

/** Remembers what this process ended, for a server that loses it. */
@Module({ imports: [AuditModule], providers: [RecentEnds], exports: [RecentEnds] })
export class ReconciliationModule {}
