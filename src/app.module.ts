import { Module, type DynamicModule, type OnApplicationShutdown, type Type } from '@nestjs/common';
import type { Logger } from 'pino';
import type { TrustAnchor } from '@svc/webauthn-policy';
import { TRUST_ANCHORS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import { AdminModule } from '#domain/admin/admin.module.js';
import { LIMITS } from '#domain/admin/database-failover/database-failover.service.js';
import {
  FAILOVER_LIMITS,
  type FailoverLimits,
} from '#domain/admin/database-failover/failover-limits.js';
import { confirmAtStart } from '#domain/admin/database-failover/confirm-at-start.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import type { Clock } from '#platform/clock/clock.js';
import { ClockModule } from '#platform/clock/clock.module.js';
import { ConfigModule } from '#platform/config/config.module.js';
import {
  CERTIFICATE_HOLDER,
  ConfigurationPoll,
  LIVE_CONFIGURATION,
} from '#platform/config-sources/configuration-poll.service.js';
import type { LiveConfiguration } from '#platform/config-sources/live-configuration.js';
import type { Config } from '#platform/config/config.js';
import type { Composition } from '#platform/database/composition.js';
import { DatabaseModule } from '#platform/database/database.module.js';
import type { PreparedDatabase } from '#platform/database/open-database.js';
import { PAGE_ACTION } from '#platform/http/errors/error-renderer.service.js';
import { API_DESCRIPTION } from '#platform/http/openapi/api-description.js';
import { HttpModule } from '#platform/http/http.module.js';
import { EdgeModule, FallbackModule } from './edge.module.js';
import { PAGE_SCRIPTS } from '#platform/http/views/views.service.js';
import type { KmsLimits } from '#platform/kms/call-policy.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import type { GatherMetrics } from '#platform/telemetry/service-metrics.service.js';
import { TelemetryModule } from '#platform/telemetry/telemetry.module.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AdminPagesModule } from './features/pages/admin-pages.module.js';
import { SettingsPagesModule } from './features/pages/settings-pages.module.js';
import { AccountApiModule } from './features/account/account-api.module.js';
import { AuditLogModule } from './features/audit-log/audit-log.module.js';
import { CertificationModule } from './features/certification/certification.module.js';
import { CredentialsModule } from './features/credentials/credentials.module.js';
import { GitHubApiModule } from './features/github/github.module.js';
import { HealthModule } from './features/health/health.module.js';
import { InstallModule } from './features/install/install.module.js';
import { SecurityContactModule } from './features/security-contact/security-contact.module.js';
import { MetricsModule } from './features/metrics/metrics.module.js';
import { OidcModule } from './features/oidc/oidc.module.js';
import { API } from './features/openapi/api-groups.js';
import { OpenApiModule } from './features/openapi/openapi.module.js';
import { OrgAdminModule } from './features/org-admin/org-admin.module.js';
import { pageActionOf } from './features/pages/shell/page-action.js';
import { DocumentPagesModule } from './features/pages/documents/documents.module.js';
import { PagesModule } from './features/pages/pages.module.js';
import { ScimModule } from './features/scim/scim.module.js';
import { OwnSessionsModule } from './features/sessions/sessions.module.js';
import { SignalsModule } from './features/signals/signals.module.js';
import { SshCaModule } from './features/ssh-ca/ssh-ca.module.js';
import { UpstreamModule } from './features/upstream/upstream.module.js';
import { WebAuthnModule } from './features/webauthn/webauthn.module.js';
import { LISTENER_PLAN, Listeners, type ListenerPlan } from './listeners.service.js';

/**
 * The decisions about the application that its composition root makes in code, and that no
 * environment variable can change. There is a composition root for production, one for the demo and
 * one for the tests.
 */
export interface CompositionRoot extends ListenerPlan {
  readonly composition: Composition;
  /**
   * The root certificates that the service trusts in attestations of security keys. In production
   * they are only the pinned roots of the vendor.
   */
  readonly trustAnchors: readonly TrustAnchor[];
  /** The scripts that every page loads. Production has none. */
  readonly pageScripts: readonly string[];
  /** The time-outs and retries of calls to AWS KMS. */
  readonly kmsLimits: KmsLimits;
  /**
   * The intervals and waiting times during a failover of the database; by default those of
   * production.
   */
  readonly failoverLimits?: FailoverLimits | undefined;
  /** The clock for the services and the rate limits; by default that of the machine. */
  readonly clock?: Clock | undefined;
  /** Modules in addition to the product's features. Production has none. */
  readonly modules: readonly (Type | DynamicModule)[];
  /**
   * Compares the configuration with its document in the object store, which may change while the
   * application runs; undefined if no object store is configured.
   */
  readonly live?: LiveConfiguration | undefined;
  /** The parts that a worker gets from the primary process; undefined without workers. */
  readonly worker?: WorkerPart | undefined;
}

/**
 * The parts of the application that differ in a worker. A worker is a process that shares its port
 * with other workers.
 */
export interface WorkerPart extends OnApplicationShutdown {
  readonly database: PreparedDatabase;
  readonly gatherMetrics: GatherMetrics;
}

/**
 * The injection token of the {@link WorkerPart}. Nest calls its shutdown method when the
 * application stops.
 */
const WORKER = Symbol('WorkerPart');

/** The module of the application. It lists the features. */
@UnmatchedPaths({
  '/v1/*': { errors: 'problem', protectedResource: true, query: 'strict' },
  '/api/*': { errors: 'problem', protectedResource: true },
  '/api/v1/*': { query: 'strict' },
  // The modules that serve the next two paths may be switched off by the configuration. The rules
  // for these paths are declared here, so that they apply even then.
  '/certification/*': { tier: 'general', errors: 'problem' },
  '/metrics': { hosts: 'any' },
  // Requests for unknown paths below /admin count against the same rate limit as the pages for
  // admins.
  '/admin/*': { tier: 'general', audience: 'ui', errors: 'html' },
})
@Module({})
export class AppModule {
  static compose(
    config: Config,
    logger: Logger,
    root: CompositionRoot,
    kmsKeys: KmsKeys,
  ): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.forRoot(config, [
          { provide: TRUST_ANCHORS, useValue: root.trustAnchors },
          { provide: LIMITS, useValue: root.failoverLimits ?? FAILOVER_LIMITS },
          { provide: API_DESCRIPTION, useValue: API },
          { provide: PAGE_ACTION, useValue: pageActionOf },
          { provide: PAGE_SCRIPTS, useValue: root.pageScripts },
          { provide: KmsKeys, useValue: kmsKeys },
          { provide: LIVE_CONFIGURATION, useValue: root.live ?? null },
          {
            provide: LISTENER_PLAN,
            useValue: {
              ports: root.ports,
              hosts: root.hosts,
              timeouts: root.timeouts,
              shared: root.worker?.database,
            } satisfies ListenerPlan,
          },
        ]),
        ClockModule.forRoot(root.clock),
        DatabaseModule.forRoot(
          root.composition,
          (own) => confirmAtStart(own, root.failoverLimits),
          root.worker?.database,
        ),
        TelemetryModule.forRoot(logger, root.worker?.gatherMetrics),
        EdgeModule.forRoot(SessionsModule),
        HttpModule,
        // Express tries routes in this order: probes and programs come first, pages last.
        HealthModule,
        OidcModule,
        CredentialsModule,
        SshCaModule,
        SignalsModule,
        ScimModule,
        AccountApiModule,
        OwnSessionsModule,
        WebAuthnModule,
        UpstreamModule,
        AuditLogModule,
        OrgAdminModule,
        GitHubApiModule,
        MetricsModule.forRoot(config.metrics),
        AdminModule,
        ...CertificationModule.forRoot(config.certification, OidcModule),
        SecurityContactModule,
        InstallModule,
        OpenApiModule,
        PagesModule.forRoot(OidcModule),
        AdminPagesModule,
        SettingsPagesModule,
        DocumentPagesModule,
        ...root.modules,
        FallbackModule,
      ],
      providers: [
        Listeners,
        { provide: CERTIFICATE_HOLDER, useExisting: Listeners },
        ConfigurationPoll,
        ...(root.worker ? [{ provide: WORKER, useValue: root.worker }] : []),
      ],
    };
  }
}
