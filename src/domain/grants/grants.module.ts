import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { IssuanceModule } from '#domain/issuance/issuance.module.js';
import { ApplicationsRepository } from './applications.repository.js';
import { ArtifactsRepository } from './artifacts.repository.js';
import { ClientSecretsRepository } from './client-secrets.repository.js';
import { ClientsRepository } from './clients.repository.js';
import { ConsentsRepository } from './consents.repository.js';
import { DeviceCodesRepository } from './device-codes.repository.js';
import { BatchedQueries } from './batched-queries.service.js';
import { GrantsRepository } from './grants.repository.js';
import { ReplaysRepository } from './replays.repository.js';
import { SelfRegistrationsRepository } from './self-registrations.repository.js';

/**
 * What people allow OAuth clients, and all that is issued of it: rows that hang on one another, so that the end of a session,
 * a grant, a client or an account is the end of everything below it, in one statement and on every replica.
 *
 *     user <- session <- grant <- code, token, device code        client <- grant, token, secret
 *                        grant <- grant of a token exchange
 */
@Module({
  imports: [AccessRevocationModule, IssuanceModule],
  providers: [
    ApplicationsRepository,
    ArtifactsRepository,
    ClientSecretsRepository,
    ClientsRepository,
    ConsentsRepository,
    DeviceCodesRepository,
    BatchedQueries,
    GrantsRepository,
    ReplaysRepository,
    SelfRegistrationsRepository,
  ],
  exports: [
    ApplicationsRepository,
    ArtifactsRepository,
    ClientSecretsRepository,
    ClientsRepository,
    ConsentsRepository,
    DeviceCodesRepository,
    BatchedQueries,
    GrantsRepository,
    SelfRegistrationsRepository,
  ],
})
export class GrantsModule {
  constructor(revocation: AccessRevocation, clients: ClientsRepository) {
    revocation.register(clients);
  }
}
