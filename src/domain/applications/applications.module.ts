import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { ClientsModule } from '#domain/grants/clients/clients.module.js';
import { ManagedApplications } from './managed-applications.service.js';

/** The applications that a user or an admin manages. */
@Module({
  imports: [AuditModule, ClientsModule, DirectoryModule],
  providers: [ManagedApplications],
  exports: [ManagedApplications],
})
export class ApplicationsModule {}
