import { Module } from '@nestjs/common';
import { SingleUseModule } from '#domain/access/single-use/single-use.module.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { Clock } from '#platform/clock/clock.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { CONFIG } from '#platform/config/config.js';
import { IdentityProviders } from './identity-providers.service.js';

@Module({
  imports: [SingleUseModule],
  providers: [
    {
      provide: IdentityProviders,
      inject: [CONFIG, SingleUseStates, Clock, DataSource],
      useFactory: IdentityProviders.connect.bind(IdentityProviders),
    },
  ],
  exports: [IdentityProviders],
})
export class IdentityProvidersModule {}
