import { Module } from '@nestjs/common';
import { AccessRevocation } from './access-revocation.service.js';
import { AccessEndings } from './ended-reach/access-endings.service.js';

@Module({
  providers: [AccessEndings, AccessRevocation],
  exports: [AccessEndings, AccessRevocation],
})
export class AccessRevocationModule {}
