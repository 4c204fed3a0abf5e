import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuthenticatorsRepository } from './authenticators.repository.js';
import { WebAuthnCeremonies } from './webauthn-ceremonies.service.js';

@Module({
  imports: [AccessRevocationModule],
  providers: [AuthenticatorsRepository, WebAuthnCeremonies],
  exports: [AuthenticatorsRepository, WebAuthnCeremonies],
})
export class AuthenticatorsModule {
  constructor(revocation: AccessRevocation, keys: AuthenticatorsRepository) {
    revocation.register(keys);
  }
}
