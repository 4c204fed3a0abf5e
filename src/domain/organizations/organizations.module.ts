import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { DNS_OPTIONS, TxtRecords, type DnsOptions } from '#platform/outbound/txt-records.js';
import { DomainOwnership } from './domains/domain-ownership.service.js';
import { DomainRechecks } from './domains/domain-rechecks.service.js';
import { IssuerKeys } from './issuers/issuer-keys.service.js';
import { OrganizationsRepository } from './organizations.repository.js';

/**
 * Organizations, their domains and their token issuers. The service does not start if an
 * organization has an issuer whose private keys cannot be decrypted.
 */
@Module({
  imports: [AccessRevocationModule, AuditModule],
  providers: [
    DomainOwnership,
    DomainRechecks,
    {
      provide: IssuerKeys,
      inject: [CONFIG, DataSource, KmsKeys],
      useFactory: (config: Config, dataSource: DataSource, kms: KmsKeys) =>
        IssuerKeys.open(config, dataSource, kms),
    },
    OrganizationsRepository,
    {
      provide: TxtRecords,
      inject: [{ token: DNS_OPTIONS, optional: true }],
      useFactory: (options?: DnsOptions) => new TxtRecords(options),
    },
  ],
  exports: [DomainOwnership, IssuerKeys, OrganizationsRepository, TxtRecords],
})
export class OrganizationsModule {}
