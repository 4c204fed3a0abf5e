import { Module } from '@nestjs/common';
import { MemberRecords } from './member-records.service.js';

@Module({ providers: [MemberRecords], exports: [MemberRecords] })
export class MemberRecordsModule {}
