import { Module, type DynamicModule, type OnModuleInit, type Type } from '@nestjs/common';
import { AccountModule } from '#domain/account/account.module.js';
import { AuditModule } from '#domain/audit/audit.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { ProvidersModule } from '#domain/providers/providers.module.js';
import { SignInModule } from '#domain/sign-in/sign-in.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { UnmatchedPaths } from '#platform/http/routing/route.js';
import { AccountPagesController } from './account-pages.controller.js';
import { ActivityPageController } from './account/activity-page.controller.js';
import { OwnApplicationsPageController } from './account/applications-page.controller.js';
import { CredentialsPageController } from './account/credentials-page.controller.js';
import { KeysPageController } from './account/keys-page.controller.js';
import { MovedPagesController } from './account/moved-pages.controller.js';
import { OverviewPageController } from './account/overview-page.controller.js';
import { SessionsPageController } from './account/sessions-page.controller.js';
import { ReachPageController } from './account/reach-page.controller.js';
import { HomePageController } from './home-page.controller.js';
import { LoginPageController } from './login-page.controller.js';
import { NoticesController } from './notices.controller.js';
import { StaticController } from './static.controller.js';

/**
 * Serves /, /login, /enroll, /account, /logout and /static: pages that the server renders, without
 * inline script or style. The feature webauthn serves the requests by which these pages enroll keys
 * and log users in.
 */
@UnmatchedPaths({
  '/account/*': { tier: 'general', audience: 'ui' },
  '/login/*': { audience: 'ui' },
  '/enroll/*': { audience: 'ui' },
  '/static/*': { audience: 'ui' },
})
@Module({})
export class PagesModule implements OnModuleInit {
  /**
   * @param pendingLogins the module that exports `PendingLogins`, the requests that wait for a
   *   login
   */
  static forRoot(pendingLogins: Type): DynamicModule {
    return {
      module: PagesModule,
      imports: [
        HttpModule,
        AccountModule,
        AuditModule,
        KeysModule,
        ProvidersModule,
        SignInModule,
        SessionsModule,
        pendingLogins,
      ],
      controllers: [
        AccountPagesController,
        ActivityPageController,
        CredentialsPageController,
        HomePageController,
        KeysPageController,
        LoginPageController,
        MovedPagesController,
        NoticesController,
        OverviewPageController,
        OwnApplicationsPageController,
        ReachPageController,
        SessionsPageController,
        StaticController,
      ],
    };
  }

  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    for (const folder of ['views/', 'shell/views/', 'account/views/']) {
      this.views.register(new URL(folder, import.meta.url));
    }
  }
}
