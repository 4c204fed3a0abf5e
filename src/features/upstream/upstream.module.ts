import { Module } from '@nestjs/common';
import { IdentityProvidersModule } from '#domain/identity-providers/identity-providers.module.js';
import { UpstreamLoginModule } from '#domain/upstream-login/upstream-login.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { CallbackController } from './callback.controller.js';

/** Serves /oauth/callback, to which an upstream identity provider redirects the browser. */
@UnmatchedPaths({ '/oauth/callback/*': { errors: 'html' } })
@Module({
  imports: [HttpModule, IdentityProvidersModule, UpstreamLoginModule],
  controllers: [CallbackController],
})
export class UpstreamModule {}
