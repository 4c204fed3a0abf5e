import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { UsersModule } from '#domain/users/users.module.js';
import { ScimGroupChanges } from './scim-group-changes.service.js';
import { ScimGroupsRepository } from './scim-groups.repository.js';
import { ScimUserChanges } from './scim-user-changes.service.js';
import { ScimUserListsRepository } from './scim-user-lists.repository.js';
import { ScimUsersRepository } from './scim-users.repository.js';

/**
 * The users and groups of an organization as its identity provider sees and changes them (RFC 7643). The language of SCIM,
 * schemas, filters and PATCH, is pure functions beside; HTTP is the feature's.
 */
@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule, UsersModule],
  providers: [
    ScimGroupChanges,
    ScimGroupsRepository,
    ScimUserChanges,
    ScimUserListsRepository,
    ScimUsersRepository,
  ],
  exports: [
    ScimGroupChanges,
    ScimGroupsRepository,
    ScimUserChanges,
    ScimUserListsRepository,
    ScimUsersRepository,
  ],
})
export class ScimModule {}
