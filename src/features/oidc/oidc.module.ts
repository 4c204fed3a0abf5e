import { Logger, Module, type OnModuleInit } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AuthenticatorsModule } from '#domain/authenticators/authenticators.module.js';
import { GrantsModule } from '#domain/grants/grants.module.js';
import { PendingLogins } from '#domain/grants/pending-logins.js';
import { IdentityProvidersModule } from '#domain/identity-providers/identity-providers.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { TokenSigningModule } from '#domain/token-signing/token-signing.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { KeyAuthenticationModule } from '#domain/key-authentication/key-authentication.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { OutboundModule } from '#platform/outbound/outbound.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { ApplicationRules } from './applications/application-rules.service.js';
import { ApplicationSecretsController } from './applications/application-secrets.controller.js';
import { ApplicationSecrets } from './applications/application-secrets.service.js';
import { ApplicationsController } from './applications/applications.controller.js';
import { Applications } from './applications/applications.service.js';
import { ManagedApplications } from './applications/managed-applications.service.js';
import { DeviceApprovals } from './device/device-approvals.service.js';
import { DeviceController } from './device/device.controller.js';
import { DeviceSignIn } from './device/device-sign-in.service.js';
import { DeviceRequests } from './device/device-requests.service.js';
import { AccessTokenJwts } from './engine/access-tokens.service.js';
import { Adapters } from './storage/adapters.service.js';
import { ClientAdapter } from './storage/client-adapter.service.js';
import { DevicePolls } from './storage/device-polls.service.js';
import { ErrorAnswers } from './engine/error-responses.service.js';
import { GrantLoader } from './storage/grant-loader.service.js';
import { Holders } from './request/resource-owners.service.js';
import { Interactions } from './authorization/interactions.service.js';
import { LibrarySteps } from './engine/provider-middleware.service.js';
import { MutualTls } from './engine/mutual-tls.js';
import { routeLibraryNotices } from './engine/library-notices.js';
import { OidcProvider } from './engine/oidc-provider.service.js';
import { OidcPendingLogins } from './authorization/pending-logins.service.js';
import { PageSources } from './engine/page-sources.service.js';
import { SelfRegistrations } from './storage/self-registrations.service.js';
import { PostedRequests } from './authorization/posted-requests.service.js';
import { RequestObjects } from './engine/request-objects.service.js';
import { SessionBridge } from './engine/session-sync.service.js';
import { TokenPolicies } from './engine/token-policies.service.js';
import { Fido2Challenges } from './token/fido2-challenges.service.js';
import { Fido2Grant } from './token/fido2-grant.service.js';
import { Fido2LogIn } from './token/fido2-log-in.service.js';
import { SubjectTokens } from './token/subject-tokens.service.js';
import { TokenExchange } from './token/token-exchange.service.js';
import { TokenIssuer } from './token/token-issuer.service.js';
import { WithheldErrors } from './engine/withheld-errors.service.js';
import { AuthorizationController } from './authorization/authorization.controller.js';
import { DiscoveryController } from './discovery/discovery.controller.js';
import { Fido2Controller } from './token/fido2.controller.js';
import { InteractionController } from './authorization/interaction.controller.js';
import { RegistrationController } from './registration/registration.controller.js';
import { TokenController } from './token/token.controller.js';
import { UserinfoController } from './token/userinfo.controller.js';
import { DeviceAuthorizationController } from './device/device-authorization.controller.js';
import { IntrospectionController } from './introspection/introspection.controller.js';
import { RevocationController } from './introspection/revocation.controller.js';
import { LogoutController } from './logout/logout.controller.js';

/** The rules of unmatched requests below the endpoints that browsers navigate to. */
const NAVIGATION = { tier: 'general', audience: 'navigation', errors: 'html' } as const;

/**
 * /oauth/*, /device, /interaction, /.well-known/* and /api/v1/applications: OAuth 2.0, OpenID Connect and FAPI 2.0, with
 * `oidc-provider` as the core. One controller method a path, so that limits, access rules, metrics and headers hold for each.
 * It decides neither who somebody is (domain/sessions) nor what hangs on what (domain/grants).
 */
@UnmatchedPaths({
  '/oauth/*': { errors: 'oauth' },
  '/oauth/authorize/*': NAVIGATION,
  '/oauth/logout/*': NAVIGATION,
  '/oauth/register/*': { tier: 'authentication' },
  '/device/*': { tier: 'general', audience: 'ui', errors: 'problem' },
  '/interaction/*': { tier: 'general', audience: 'ui' },
  '/api/v1/applications/*': { tier: 'general' },
})
@Module({
  imports: [
    AuditModule,
    AuthenticatorsModule,
    GrantsModule,
    HttpModule,
    IdentityProvidersModule,
    OutboundModule,
    SessionsModule,
    TokenSigningModule,
    DirectoryModule,
    KeyAuthenticationModule,
  ],
  controllers: [
    ApplicationSecretsController,
    ApplicationsController,
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
    AccessTokenJwts,
    Adapters,
    ApplicationRules,
    ApplicationSecrets,
    Applications,
    ClientAdapter,
    DeviceApprovals,
    DevicePolls,
    DeviceRequests,
    DeviceSignIn,
    ErrorAnswers,
    Fido2Challenges,
    Fido2Grant,
    Fido2LogIn,
    GrantLoader,
    Holders,
    Interactions,
    LibrarySteps,
    ManagedApplications,
    MutualTls,
    OidcProvider,
    PageSources,
    PostedRequests,
    RequestObjects,
    SelfRegistrations,
    SessionBridge,
    SubjectTokens,
    TokenExchange,
    TokenIssuer,
    TokenPolicies,
    WithheldErrors,
    { provide: PendingLogins, useClass: OidcPendingLogins },
  ],
  exports: [Interactions, OidcProvider, PendingLogins],
})
export class OidcModule implements OnModuleInit {
  constructor(private readonly views: Views) {
    routeLibraryNotices(new Logger('oidc'));
  }

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
  }
}
