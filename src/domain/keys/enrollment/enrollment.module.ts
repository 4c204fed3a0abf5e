import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AuthenticatorsModule } from '../authenticators/authenticators.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { Enrollment } from './enrollment.service.js';

@Module({
  imports: [
    AuditModule,
    AuthenticatorsModule,
    DirectoryModule,
    OrganizationsModule,
    SessionsModule,
  ],
  providers: [Enrollment],
  exports: [Enrollment],
})
export class EnrollmentModule {}
