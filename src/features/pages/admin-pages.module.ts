import { Module, type OnModuleInit } from '@nestjs/common';
import { AdminModule } from '#domain/admin/admin.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { AdminOverviewController } from './admin/admin-overview.controller.js';
import { MemberPageController } from './admin/members/member-page.controller.js';
import { AuditPageController } from './admin/audit/audit-page.controller.js';
import { MemberReachPageController } from './admin/members/reach-page.controller.js';
import { MembersPageController } from './admin/members/members-page.controller.js';

/** The folders with the templates of the pages that this module serves. */
const VIEWS = ['admin/views/', 'admin/members/views/', 'admin/audit/views/'];

/** Serves /admin and the pages below it, on which the admins of an organization manage it. */
@Module({
  imports: [AdminModule, KeysModule, HttpModule],
  controllers: [
    AdminOverviewController,
    AuditPageController,
    MemberPageController,
    MembersPageController,
    MemberReachPageController,
  ],
})
export class AdminPagesModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    for (const folder of VIEWS) this.views.register(new URL(folder, import.meta.url));
  }
}
