import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { IdentityProvidersModule } from '#domain/providers/providers.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { DNS_OPTIONS, TxtRecords, type DnsOptions } from '#platform/outbound/txt-records.js';
import { DomainOwnership } from '#domain/organizations/domains/domain-ownership.service.js';
import { DomainRechecks } from '#domain/organizations/domains/domain-rechecks.service.js';
import { OrganizationDomains } from './organization-domains.service.js';
import { VouchedDomains } from '#domain/providers/accepted/vouched-domains.service.js';

@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    DirectoryModule,
    IdentityProvidersModule,
    OrganizationsModule,
  ],
  providers: [
    DomainOwnership,
    DomainRechecks,
    OrganizationDomains,
    VouchedDomains,
    {
      provide: TxtRecords,
      inject: [{ token: DNS_OPTIONS, optional: true }],
      useFactory: (options?: DnsOptions) => new TxtRecords(options),
    },
  ],
  exports: [OrganizationDomains],
})
export class OrganizationDomainsModule {}
