import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { RecentEnds } from './recent-ends.js';
import { SecretsToConfirm } from './secrets-to-confirm.service.js';

/** Remembers what this process ended, for a server that loses it, and lists the secrets that an admin confirms then. */
@Module({
  imports: [AuditModule, DirectoryModule],
  providers: [RecentEnds, SecretsToConfirm],
  exports: [RecentEnds, SecretsToConfirm],
})
export class ReconciliationModule {}
