import { Module, type OnModuleInit } from '@nestjs/common';
import { IdentityProvidersModule } from '#domain/identity-providers/identity-providers.module.js';
import { UsersModule } from '#domain/users/users.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views.service.js';
import { AccountPagesController } from './account-pages.controller.js';
import { LoginPageController } from './login-page.controller.js';
import { StaticController } from './static.controller.js';

/**
 * /, /login, /enroll, /keys, /logout and /static: server-rendered pages, escaped by the template engine, no inline
 * script or style. The ceremonies they start are feature webauthn's; they share nothing but the paths.
 */
@Module({
  imports: [HttpModule, IdentityProvidersModule, UsersModule],
  controllers: [AccountPagesController, LoginPageController, StaticController],
})
export class PagesModule implements OnModuleInit {
  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
  }
}
