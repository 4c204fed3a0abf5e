import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { IdentityProvidersModule } from '#domain/providers/providers.module.js';
import { OrganizationProviders } from './organization-providers.service.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, DirectoryModule, IdentityProvidersModule],
  providers: [OrganizationProviders],
  exports: [OrganizationProviders],
})
export class OrganizationProvidersModule {}
