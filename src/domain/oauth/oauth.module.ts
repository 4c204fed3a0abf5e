import { Module } from '@nestjs/common';
import { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import { GRANT_ENDING } from './grants/reach-ending.repository.js';
import { AccessModule } from '#domain/access/access.module.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { Members } from '#domain/directory/members.service.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { OrganizationsRepository } from '#domain/organizations/organizations.repository.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { DataSource } from '#platform/database/statements/typeorm.js';
import { OutboundModule } from '#platform/outbound/outbound.module.js';
import { Clock } from '#platform/clock/clock.js';
import { Random } from '#platform/clock/random.js';
import { Database } from '#platform/database/open-database.js';
import { OutboundHttp } from '#platform/outbound/outbound-http.service.js';
import { KmsKeys } from '#platform/kms/kms-keys.js';
import { ApplicationNotices } from './applications/application-notices.service.js';
import { ManagedApplications } from './applications/managed-applications.service.js';
import { RegisteredResources } from './applications/registered-resources.js';
import { ClientsRepository } from './clients/clients.repository.js';
import { EndedClients } from './clients/ended-clients.service.js';
import { EventReceiverRevocation } from './event-receivers/ended-receivers.repository.js';
import { EventReceivers } from './event-receivers/event-receivers.js';
import { ReceiverSender } from './event-receivers/receiver-sender.js';
import { BatchedQueries } from './grants/batched-queries.service.js';
import { EndedAccounts } from './logout-notices/ended-accounts.repository.js';
import { LogoutSender } from './logout-notices/logout-sender.service.js';
import { NoticeWatch } from './notice-watch/notice-watch.service.js';
import { PolledSignals } from './shared-signals/polled-signals.service.js';
import { SignalSender } from './shared-signals/signal-sender.service.js';
import { SignalStreams } from './shared-signals/signal-streams.service.js';
import { SignalTokens } from './shared-signals/signal-tokens.service.js';
import { SignalledEnds } from './shared-signals/signalled-ends.repository.js';
import { TokenSigningKeys } from './token-signing/token-signing-keys.service.js';

/**
 * OAuth clients, the grants of users to them, and the tokens that depend on the grants. The rows
 * refer to one another by foreign keys with ON DELETE CASCADE. So the deletion of a session, grant,
 * client or user deletes everything below it, in one statement and for all replicas.
 *
 *     user <- session <- grant <- code, token, device code
 *                        grant <- grant of a token exchange
 *     client <- grant, token, secret
 */
@Module({
  imports: [
    AccessModule,
    AccessRevocationModule,
    AuditModule,
    DirectoryModule,
    OrganizationsModule,
    OutboundModule,
  ],
  providers: [
    ApplicationNotices,
    BatchedQueries,
    ClientsRepository,
    LogoutSender,
    ManagedApplications,
    NoticeWatch,
    PolledSignals,
    SignalSender,
    SignalStreams,
    SignalTokens,
    {
      provide: EndedClients,
      inject: [DataSource, Clock],
      useFactory: (dataSource: DataSource, clock: Clock) => new EndedClients(dataSource, clock),
    },
    {
      provide: TokenSigningKeys,
      inject: [CONFIG, DataSource, KmsKeys],
      useFactory: (config: Config, dataSource: DataSource, kmsKeys: KmsKeys) =>
        TokenSigningKeys.open(config, dataSource, kmsKeys),
    },
    {
      provide: EventReceivers,
      inject: [CONFIG, DataSource, Members, OrganizationsRepository, AuditLog, OutboundHttp],
      useFactory: (
        { secrets, http }: Config,
        dataSource: DataSource,
        members: Members,
        organizations: OrganizationsRepository,
        audit: AuditLog,
        outboundHttp: OutboundHttp,
      ) =>
        new EventReceivers({
          secrets,
          dataSource,
          members,
          organizations,
          audit,
          outboundHttp,
          baseUrl: http.baseUrl,
        }),
    },
    {
      provide: ReceiverSender,
      inject: [CONFIG, Database, OutboundHttp, Clock, Random],
      useFactory: (
        { secrets, http }: Config,
        database: Database,
        outboundHttp: OutboundHttp,
        clock: Clock,
        random: Random,
      ) => {
        const { dataSource } = database;
        const { baseUrl } = http;
        const parts = { secrets, baseUrl, dataSource, outboundHttp, clock, random };
        const sender = new ReceiverSender(parts);
        database.onRecorded(() => sender.noteEvents());
        return sender;
      },
    },
  ],
  exports: [
    ApplicationNotices,
    BatchedQueries,
    ClientsRepository,
    EventReceivers,
    ManagedApplications,
    PolledSignals,
    SignalStreams,
    TokenSigningKeys,
  ],
})
export class OAuthModule {
  constructor(
    revocation: AccessRevocation,
    endings: AccessEndings,
    clients: ClientsRepository,
    auditLog: AuditLog,
  ) {
    endings.register(GRANT_ENDING);
    revocation.register(new SignalledEnds());
    revocation.register(new EndedAccounts());
    revocation.register(clients);
    revocation.register(new RegisteredResources(auditLog));
    revocation.register(new EventReceiverRevocation(auditLog));
  }
}
