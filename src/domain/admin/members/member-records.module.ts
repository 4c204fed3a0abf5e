import { Module } from '@nestjs/common';
import { AccessRevocationModule } from '#domain/access-revocation/access-revocation.module.js';
import { DirectoryModule } from '#domain/directory/directory.module.js';
import { MemberRecords } from './member-records.service.js';

@Module({
  imports: [AccessRevocationModule, DirectoryModule],
  providers: [MemberRecords],
  exports: [MemberRecords],
})
export class MemberRecordsModule {}
