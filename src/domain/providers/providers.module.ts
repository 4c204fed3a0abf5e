import { Module, type OnApplicationBootstrap } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG } from '#platform/config/config.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { recordVouchedDomains } from './accepted/vouched-domains.js';
import { IdentityProviders } from './identity-providers.service.js';

@Module({
  imports: [AccessModule, AccessRevocationModule, OrganizationsModule],
  providers: [
    {
      provide: IdentityProviders,
      inject: [CONFIG, SingleUseStates, Clock, DataSource],
      useFactory: IdentityProviders.connect.bind(IdentityProviders),
    },
  ],
  exports: [IdentityProviders],
})
export class ProvidersModule implements OnApplicationBootstrap {
  constructor(
    private readonly dataSource: DataSource,
    private readonly identityProviders: IdentityProviders,
    private readonly organizations: OrganizationsRepository,
    private readonly accessRevocation: AccessRevocation,
  ) {}

  /**
   * Records at each start which primary domains of organizations are proven, because the
   * configuration lists them for an identity provider.
   */
  async onApplicationBootstrap(): Promise<void> {
    const { dataSource, identityProviders, organizations, accessRevocation } = this;
    await recordVouchedDomains({ dataSource, identityProviders, organizations, accessRevocation });
  }
}
