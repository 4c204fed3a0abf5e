import { Inject, Module, type OnApplicationBootstrap } from '@nestjs/common';
import type { BackgroundProvider } from '#platform/background/background-work.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { FeedWatch } from '#domain/audit/feed/feed-watch.js';
import { CheckpointStore } from '#domain/audit/seal/checkpoint-store.js';
import { openSealKey } from '#domain/audit/seal/seal-key.js';
import { AuditSealer } from '#domain/audit/seal/sealer.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ProvidersModule } from '#domain/providers/providers.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { SshModule } from '#domain/ssh/ssh.module.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { AccessRules } from './access-rules/access-rules.service.js';
import { AuditEvents } from './audit-search/audit-events.service.js';
import { SavedQuestions } from './audit-search/saved-questions.service.js';
import { CleanUp } from './clean-up/clean-up.service.js';
import { DatabaseFailover } from './database-failover/database-failover.service.js';
import { RecentEnds } from './database-failover/reconciliation/recent-ends.js';
import { MemberAccess } from './members/member-access.service.js';
import { MemberRecords } from './members/member-records.service.js';
import { IssuerAdmin } from './organization/issuer-admin.service.js';
import { OrganizationAdmin } from './organization/organization-admin.service.js';
import { OrganizationDomains } from './organization/organization-domains.service.js';
import { OrganizationProviders } from './organization/organization-providers.service.js';

/**
 * The acts of admins, and the work that the service does by itself. It cleans up expired rows,
 * seals the audit log, and checks if a database failover lost commits.
 */
@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    DirectoryModule,
    KeysModule,
    OrganizationsModule,
    ProvidersModule,
    SessionsModule,
    SshModule,
  ],
  providers: [
    AccessRules,
    AuditEvents,
    CleanUp,
    DatabaseFailover,
    IssuerAdmin,
    MemberAccess,
    MemberRecords,
    OrganizationAdmin,
    OrganizationDomains,
    OrganizationProviders,
    RecentEnds,
    SavedQuestions,
  ],
  exports: [
    AccessRules,
    AuditEvents,
    IssuerAdmin,
    MemberAccess,
    MemberRecords,
    OrganizationAdmin,
    OrganizationDomains,
    OrganizationProviders,
    SavedQuestions,
  ],
})
export class AdminModule implements OnApplicationBootstrap, BackgroundProvider {
  readonly #feedWatch: FeedWatch;
  #sealer: AuditSealer | undefined;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly dataSource: DataSource,
    private readonly clock: Clock,
    private readonly kmsKeys: KmsKeys,
  ) {
    this.#feedWatch = new FeedWatch(dataSource, clock);
  }

  async onApplicationBootstrap(): Promise<void> {
    this.#feedWatch.start();
    const key = await openSealKey(this.config, this.dataSource.manager, this.kmsKeys);
    if (!key) return;
    const store = await CheckpointStore.open(this.config);
    this.#sealer = new AuditSealer(this.dataSource, this.clock, key, store);
    this.#sealer.start();
  }

  async stopWork(): Promise<void> {
    await Promise.all([this.#feedWatch.stop(), this.#sealer?.stop()]);
  }
}
