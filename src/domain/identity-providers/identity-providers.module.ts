import { Module } from '@nestjs/common';
import { SingleUseModule } from '#domain/single-use/single-use.module.js';
import { SingleUseStates } from '#domain/single-use/single-use-states.service.js';
import { CONFIG } from '#platform/config/config.js';
import { IdentityProviders } from './identity-providers.service.js';

/**
 * Upstream identity providers (OpenID Connect Core 1.0): discovers them while the application is built, so that one
 * that cannot be used stops the start; sends browsers there and says who came back. It neither looks users up nor
 * makes them, and serves no route.
 */
@Module({
  imports: [SingleUseModule],
  providers: [
    {
      provide: IdentityProviders,
      inject: [CONFIG, SingleUseStates],
      useFactory: IdentityProviders.connect.bind(IdentityProviders),
    },
  ],
  exports: [IdentityProviders],
})
export class IdentityProvidersModule {}
