import { Module, type OnModuleInit } from '@nestjs/common';
import { AuditSearchModule } from '#domain/audit-search/audit-search.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { AuditPageController } from './audit-page.controller.js';

/** Serves the pages of the audit log. */
@Module({ imports: [HttpModule, AuditSearchModule], controllers: [AuditPageController] })
export class AuditPagesModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
  }
}
