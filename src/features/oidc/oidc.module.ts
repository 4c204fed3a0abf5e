import { Logger, Module, type OnModuleInit } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { OAuthModule } from '#domain/oauth/oauth.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { PendingLogins } from '#domain/oauth/grants/pending-logins.js';
import { ProvidersModule } from '#domain/providers/providers.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { SignInModule } from '#domain/sign-in/sign-in.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { OutboundModule } from '#platform/outbound/outbound.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { ApplicationNoticesController } from './applications/application-notices.controller.js';
import { ApplicationSecretsController } from './applications/application-secrets.controller.js';
import { ApplicationSignalsController } from './applications/application-signals.controller.js';
import { ApplicationsController } from './applications/applications.controller.js';
import { ProgramApplicationsController } from './applications/program-applications.controller.js';
import { Applications } from './applications/applications.service.js';
import { Clusters } from './applications/clusters.service.js';
import { AuthorizationController } from './authorization/authorization.controller.js';
import { InteractionController } from './authorization/interaction.controller.js';
import { Interactions } from './authorization/interactions.service.js';
import { DeviceAuthorizationController } from './device/device-authorization.controller.js';
import { DeviceController } from './device/device.controller.js';
import { Devices } from './device/devices.service.js';
import { DiscoveryController } from './discovery/discovery.controller.js';
import { AccessTokens } from './engine/access-tokens.service.js';
import { ErrorResponses } from './engine/error-responses.service.js';
import { logNotices } from './engine/library-patches.js';
import { OidcProvider } from './engine/oidc-provider.service.js';
import { ProviderOptions } from './engine/provider-options.service.js';
import { IntrospectionController } from './introspection/introspection.controller.js';
import { RevocationController } from './introspection/revocation.controller.js';
import { LogoutController } from './logout/logout.controller.js';
import { RegistrationController } from './registration/registration.controller.js';
import { ResourceOwners } from './request/resource-owners.service.js';
import { Adapters } from './storage/adapters.service.js';
import { ClientAdapter } from './storage/client-adapter.service.js';
import { GrantAdapter } from './storage/grant-adapter.service.js';
import { SelfRegistrations } from './storage/self-registrations.service.js';
import { Fido2Controller } from './token/fido2.controller.js';
import { Fido2Grant } from './token/fido2-grant.service.js';
import { TokenController } from './token/token.controller.js';
import { UserinfoController } from './token/userinfo.controller.js';

/**
 * The rules for requests that match no route, at paths below the endpoints to which browsers
 * navigate.
 */
const NAVIGATION = { tier: 'general', audience: 'navigation', errors: 'html' } as const;

/**
 * Serves OAuth 2.0, OpenID Connect and FAPI 2.0 by the library `oidc-provider`. README.md lists the
 * folders, one for each endpoint.
 */
@UnmatchedPaths({
  '/oauth/*': { errors: 'oauth' },
  '/oauth/authorize/*': NAVIGATION,
  '/oauth/logout/*': NAVIGATION,
  '/oauth/register/*': { tier: 'authentication' },
  '/device/*': { tier: 'general', audience: 'ui' },
  '/interaction/*': { tier: 'general', audience: 'ui' },
  '/api/v1/applications/*': { tier: 'general' },
})
@Module({
  imports: [
    AccessModule,
    OAuthModule,
    AuditModule,
    KeysModule,
    HttpModule,
    ProvidersModule,
    OutboundModule,
    SessionsModule,
    DirectoryModule,
    SignInModule,
  ],
  controllers: [
    ApplicationNoticesController,
    ApplicationSecretsController,
    ApplicationSignalsController,
    ApplicationsController,
    ProgramApplicationsController,
    AuthorizationController,
    DeviceAuthorizationController,
    DeviceController,
    DiscoveryController,
    Fido2Controller,
    InteractionController,
    IntrospectionController,
    LogoutController,
    RegistrationController,
    RevocationController,
    TokenController,
    UserinfoController,
  ],
  providers: [
    AccessTokens,
    Adapters,
    Applications,
    Clusters,
    ClientAdapter,
    Devices,
    ErrorResponses,
    Fido2Grant,
    GrantAdapter,
    Interactions,
    OidcProvider,
    ProviderOptions,
    ResourceOwners,
    SelfRegistrations,
    { provide: PendingLogins, useExisting: Interactions },
  ],
  exports: [Interactions, OidcProvider, PendingLogins],
})
export class OidcModule implements OnModuleInit {
  constructor(private readonly views: Views) {
    logNotices(new Logger('oidc'));
  }

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
  }
}
