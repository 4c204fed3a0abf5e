import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { MemberTies } from './member-ties.service.js';
import { Members } from './members.service.js';
import { RecordEnds } from './record-ends.service.js';
import { SignInRecords } from './sign-in-records.service.js';
import { UserDirectory } from './user-directory.service.js';
import { UsersRepository } from './users.repository.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule],
  providers: [Members, MemberTies, RecordEnds, SignInRecords, UserDirectory, UsersRepository],
  exports: [Members, MemberTies, RecordEnds, SignInRecords, UserDirectory, UsersRepository],
})
export class DirectoryModule {}
