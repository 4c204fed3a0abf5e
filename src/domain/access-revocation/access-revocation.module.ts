import { Module } from '@nestjs/common';
import { AccessRevocation } from './access-revocation.service.js';

@Module({ providers: [AccessRevocation], exports: [AccessRevocation] })
export class AccessRevocationModule {}
