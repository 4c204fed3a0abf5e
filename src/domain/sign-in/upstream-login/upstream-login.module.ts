import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { IdentityLinks } from './identity-links.service.js';
import { UpstreamLogin } from './upstream-login.service.js';

@Module({
  imports: [AuditModule, DirectoryModule, OrganizationsModule, SessionsModule],
  providers: [IdentityLinks, UpstreamLogin],
  exports: [UpstreamLogin],
})
export class UpstreamLoginModule {}
