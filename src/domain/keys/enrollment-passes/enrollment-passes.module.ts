import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { EnrollmentPassesRepository } from './enrollment-passes.repository.js';
import { EnrollmentPasses } from './enrollment-passes.service.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, DirectoryModule],
  providers: [EnrollmentPasses, EnrollmentPassesRepository],
  exports: [EnrollmentPasses],
})
export class EnrollmentPassesModule {
  constructor(revocation: AccessRevocation, passes: EnrollmentPassesRepository) {
    revocation.register(passes);
  }
}
