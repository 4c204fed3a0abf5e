import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { ClientsModule } from '../clients/clients.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { ManagedApplications } from './managed-applications.service.js';
import { RegisteredResources } from './registered-resources.service.js';

/** The applications that a user or an admin manages. */
@Module({
  imports: [AccessRevocationModule, AuditModule, ClientsModule, DirectoryModule],
  providers: [ManagedApplications, RegisteredResources],
  exports: [ManagedApplications, RegisteredResources],
})
export class ApplicationsModule {
  constructor(revocation: AccessRevocation, registeredResources: RegisteredResources) {
    revocation.register(registeredResources);
  }
}
