import { Module } from '@nestjs/common';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { IssuerHosts } from './issuer-hosts.service.js';
import { IssuerKeys } from './issuer-keys.service.js';
import { OrganizationIssuersRepository } from './organization-issuers.repository.js';

/** The issuers of organizations. A start fails where one exists and its keys cannot be opened. */
@Module({
  providers: [
    OrganizationIssuersRepository,
    IssuerHosts,
    {
      provide: IssuerKeys,
      inject: [CONFIG, DataSource, KmsKeys],
      useFactory: (config: Config, dataSource: DataSource, kms: KmsKeys) =>
        IssuerKeys.open(config, dataSource, kms),
    },
  ],
  exports: [OrganizationIssuersRepository, IssuerHosts, IssuerKeys],
})
export class OrganizationIssuersModule {}
