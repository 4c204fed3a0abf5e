import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { ApplicationsRepository } from './applications.repository.js';
import { ClientsRepository } from './clients.repository.js';
import { DynamicClientsRepository } from './dynamic-clients.repository.js';

/** OAuth clients: those of the product, those that a user registered, and those that registered themselves. */
@Module({
  imports: [AccessRevocationModule],
  providers: [ApplicationsRepository, ClientsRepository, DynamicClientsRepository],
  exports: [ApplicationsRepository, ClientsRepository, DynamicClientsRepository],
})
export class ClientsModule {
  constructor(revocation: AccessRevocation, clients: ClientsRepository) {
    revocation.register(clients);
  }
}
