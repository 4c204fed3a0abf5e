import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuthenticatorsRepository } from './authenticators.repository.js';
import { WebAuthnCeremonies } from './webauthn-ceremonies.service.js';

/**
 * Security keys: whose attestation we believe, which models may enroll, and the two ceremonies. The trust anchors come
 * from the composition root.
 */
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
