import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { KeyAuthentication } from './key-authentication/key-authentication.service.js';
import { SecurityKeys } from './key-authentication/security-keys.service.js';
import { IdentityLinks } from './upstream-login/identity-links.service.js';
import { UpstreamLogin } from './upstream-login/upstream-login.service.js';

@Module({
  imports: [
    AccessRevocationModule,
    AuditModule,
    DirectoryModule,
    KeysModule,
    OrganizationsModule,
    SessionsModule,
  ],
  providers: [IdentityLinks, KeyAuthentication, SecurityKeys, UpstreamLogin],
  exports: [KeyAuthentication, SecurityKeys, UpstreamLogin],
})
export class SignInModule {}
