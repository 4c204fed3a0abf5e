import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ScimUsersRepository } from './directory-users.repository.js';
import { ScimGroupChanges } from './group-provisioning.service.js';
import { ScimGroupsRepository } from './groups.repository.js';
import { Members } from './members.service.js';
import { UserDirectory } from './user-directory.service.js';
import { ScimUserChanges } from './user-provisioning.service.js';
import { UsersRepository } from './users.repository.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule],
  providers: [
    Members,
    ScimGroupChanges,
    ScimGroupsRepository,
    ScimUserChanges,
    ScimUsersRepository,
    UserDirectory,
    UsersRepository,
  ],
  exports: [
    Members,
    ScimGroupChanges,
    ScimGroupsRepository,
    ScimUserChanges,
    ScimUsersRepository,
    UserDirectory,
    UsersRepository,
  ],
})
export class DirectoryModule {}
