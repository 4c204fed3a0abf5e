import { Module } from '@nestjs/common';
import { HttpModule } from '#platform/http/http.module.js';
import { SecurityContactController } from './security-contact.controller.js';

@Module({ imports: [HttpModule], controllers: [SecurityContactController] })
export class SecurityContactModule {}
