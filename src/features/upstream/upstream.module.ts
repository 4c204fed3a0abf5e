import { Module } from '@nestjs/common';
import { IdentityProvidersModule } from '#domain/providers/providers.module.js';
import { UpstreamLoginModule } from '#domain/sign-in/upstream-login/upstream-login.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { CallbackController } from './callback.controller.js';
import { SamlController } from './saml.controller.js';

/** Serves /oauth/callback and /saml/*, to which an upstream identity provider sends the browser. */
@UnmatchedPaths({
  '/oauth/callback/*': { errors: 'html' },
  '/saml/acs': { body: { max: 64 * KIB }, errors: 'html' },
})
@Module({
  imports: [HttpModule, IdentityProvidersModule, UpstreamLoginModule],
  controllers: [CallbackController, SamlController],
})
export class UpstreamModule {}
