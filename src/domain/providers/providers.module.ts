import { Module } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG } from '#platform/config/config.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { VouchedDomains } from './accepted/vouched-domains.service.js';
import { IdentityProviders } from './identity-providers.service.js';

@Module({
  imports: [AccessModule, AccessRevocationModule, OrganizationsModule],
  providers: [
    {
      provide: IdentityProviders,
      inject: [CONFIG, SingleUseStates, Clock, DataSource],
      useFactory: IdentityProviders.connect.bind(IdentityProviders),
    },
    VouchedDomains,
  ],
  exports: [IdentityProviders],
})
export class ProvidersModule {}
