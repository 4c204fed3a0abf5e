import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { UsersModule } from '#domain/users/users.module.js';
import { ScimGroupChanges } from './group-provisioning.service.js';
import { ScimGroupsRepository } from './groups.repository.js';
import { ScimUserChanges } from './user-provisioning.service.js';
import { ScimUsersRepository } from './directory-users.repository.js';

/** Users, groups and memberships of an organization, as its identity provider changes them. */
@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule, UsersModule],
  providers: [ScimGroupChanges, ScimGroupsRepository, ScimUserChanges, ScimUsersRepository],
  exports: [ScimGroupChanges, ScimGroupsRepository, ScimUserChanges, ScimUsersRepository],
})
export class DirectoryModule {}
