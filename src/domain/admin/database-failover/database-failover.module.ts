import { Module, type DynamicModule } from '@nestjs/common';
import { SshCertificatesModule } from '#domain/ssh/ssh.module.js';
import { DatabaseFailover, LIMITS } from './database-failover.service.js';
import type { FailoverLimits } from './failover-limits.js';
import { ReconciliationModule } from './reconciliation/reconciliation.module.js';

/** Notices that the database was restarted, promoted or restored, and confirms it. */
@Module({})
export class DatabaseFailoverModule {
  static forRoot(limits: FailoverLimits): DynamicModule {
    return {
      module: DatabaseFailoverModule,
      imports: [ReconciliationModule, SshCertificatesModule],
      providers: [{ provide: LIMITS, useValue: limits }, DatabaseFailover],
    };
  }
}
