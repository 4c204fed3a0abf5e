import { Module } from '@nestjs/common';
import { AuthenticatorsRepository } from './authenticators.repository.js';
import { WebAuthnCeremonies } from './webauthn-ceremonies.service.js';

/**
 * Security keys: whose attestation we believe, which models may enroll, and the two ceremonies. The trust anchors come
 * from the composition root.
 */
@Module({
  providers: [AuthenticatorsRepository, WebAuthnCeremonies],
  exports: [AuthenticatorsRepository, WebAuthnCeremonies],
})
export class AuthenticatorsModule {}
