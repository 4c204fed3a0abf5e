import { Module } from '@nestjs/common';
import { ClientsModule } from '../clients/clients.module.js';
import { IssuanceModule } from '#domain/access/access.module.js';
import { ArtifactsRepository } from './artifacts.repository.js';
import { DeviceCodesRepository } from './device-codes.repository.js';
import { BatchedQueries } from './batched-queries.service.js';
import { GrantsRepository } from './grants.repository.js';

/**
 * The grants of users to OAuth clients, and the tokens that hang on them. The rows hang on one another, so that the end of a session, a
 * grant, a client or an account ends everything below it, in one statement and on every replica.
 *
 *     user <- session <- grant <- code, token, device code        client <- grant, token, secret
 *                        grant <- grant of a token exchange
 */
@Module({
  imports: [ClientsModule, IssuanceModule],
  providers: [ArtifactsRepository, DeviceCodesRepository, BatchedQueries, GrantsRepository],
  exports: [
    ClientsModule,
    ArtifactsRepository,
    DeviceCodesRepository,
    BatchedQueries,
    GrantsRepository,
  ],
})
export class GrantsModule {}
