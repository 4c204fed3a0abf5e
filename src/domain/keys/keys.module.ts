import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { AuthenticatorsRepository } from './authenticators/authenticators.repository.js';
import { WebAuthnCeremonies } from './authenticators/webauthn-ceremonies.service.js';
import { EnrollmentPassesRepository } from './enrollment-passes/enrollment-passes.repository.js';
import { EnrollmentPasses } from './enrollment-passes/enrollment-passes.service.js';
import { Enrollment } from './enrollment/enrollment.service.js';

@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    DirectoryModule,
    OrganizationsModule,
    SessionsModule,
  ],
  providers: [AuthenticatorsRepository, Enrollment, EnrollmentPasses, WebAuthnCeremonies],
  exports: [AuthenticatorsRepository, Enrollment, EnrollmentPasses, WebAuthnCeremonies],
})
export class KeysModule {
  constructor(revocation: AccessRevocation, keys: AuthenticatorsRepository) {
    revocation.register(keys);
    revocation.register(new EnrollmentPassesRepository());
  }
}
