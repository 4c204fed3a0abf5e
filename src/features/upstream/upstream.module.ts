import { Module } from '@nestjs/common';
import { ProvidersModule } from '#domain/providers/providers.module.js';
import { SignInModule } from '#domain/sign-in/sign-in.module.js';
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
  imports: [HttpModule, ProvidersModule, SignInModule],
  controllers: [CallbackController, SamlController],
})
export class UpstreamModule {}
