import { Module } from '@nestjs/common';
import { AuditModule } from '#domain/audit/audit.module.js';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { DirectoryUsersRepository } from './directory-users.repository.js';
import { GroupProvisioning } from './group-provisioning.service.js';
import { GroupsRepository } from './groups.repository.js';
import { MembershipsRepository } from './memberships.repository.js';
import { RecordWrites } from './record-writes.service.js';
import { UserProvisioning } from './user-provisioning.service.js';

/** Provides users, groups and memberships as an identity provider changes them. */
@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule, DirectoryModule],
  providers: [
    DirectoryUsersRepository,
    GroupProvisioning,
    GroupsRepository,
    MembershipsRepository,
    RecordWrites,
    UserProvisioning,
  ],
  exports: [GroupProvisioning, MembershipsRepository, UserProvisioning],
})
export class ProvisioningModule {}
