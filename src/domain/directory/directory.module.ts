import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { OrganizationsModule } from '#domain/organizations/organizations.module.js';
import { Members } from './members.service.js';
import { UserDirectory } from './user-directory.service.js';
import { UsersRepository } from './users.repository.js';

@Module({
  imports: [AccessRevocationModule, AuditModule, OrganizationsModule],
  providers: [Members, UserDirectory, UsersRepository],
  exports: [Members, UserDirectory, UsersRepository],
})
export class DirectoryModule {}
