import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AccessRevocation } from '#domain/access-revocation/access-revocation.service.js';
import { AuditLog } from '#domain/audit/audit.repository.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { ApiTokenRevocation, DemotedApiTokens } from './api-tokens/ended-api-tokens.repository.js';
import { MemberTies } from './member-ties.service.js';
import { Members } from './members.service.js';
import { GroupProvisioning } from './provisioning/group-provisioning.service.js';
import { MembershipsRepository } from './provisioning/memberships.repository.js';
import { RecordWrites } from './provisioning/record-writes.service.js';
import { UserProvisioning } from './provisioning/user-provisioning.service.js';
import { RecordEnds } from './record-ends.service.js';
import { UserDirectory } from './user-directory.service.js';
import { UsersRepository } from './users.repository.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule],
  providers: [
    GroupProvisioning,
    Members,
    MembershipsRepository,
    MemberTies,
    RecordEnds,
    RecordWrites,
    UserDirectory,
    UserProvisioning,
    UsersRepository,
  ],
  exports: [
    GroupProvisioning,
    Members,
    MembershipsRepository,
    MemberTies,
    RecordEnds,
    UserDirectory,
    UserProvisioning,
    UsersRepository,
  ],
})
export class DirectoryModule {
  constructor(revocation: AccessRevocation, auditLog: AuditLog) {
    revocation.register(new ApiTokenRevocation(auditLog));
    revocation.register(new DemotedApiTokens(auditLog));
  }
}
