import { Logger, Module, type DynamicModule, type OnModuleInit, type Type } from '@nestjs/common';
import { SignInModule } from '#domain/sign-in/sign-in.module.js';
import type { Config } from '#platform/config/config.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { CertificationController } from './certification.controller.js';
import { CERTIFICATION_TOKEN } from './certification.schemas.js';

/**
 * Serves /certification/*. An OpenID conformance suite, which has no security key, uses these paths
 * instead of a login. The paths exist only in certification test mode, which also turns the rate
 * limits off. Every start in this mode logs a warning, because the mode is not for production.
 */
@Module({})
export class CertificationModule implements OnModuleInit {
  /**
   * @param pendingLogins the module that exports `PendingLogins`, the requests that wait for a
   *   login
   * @returns an empty list if no test token is configured, so that the paths do not exist
   */
  static forRoot({ token }: Config['certification'], pendingLogins: Type): DynamicModule[] {
    if (token === undefined) return [];
    return [
      {
        module: CertificationModule,
        imports: [HttpModule, SignInModule, pendingLogins],
        controllers: [CertificationController],
        providers: [{ provide: CERTIFICATION_TOKEN, useValue: token }],
      },
    ];
  }

  constructor(private readonly views: Views) {}

  onModuleInit(): void {
    this.views.register(new URL('views/', import.meta.url));
    new Logger('security').warn(
      'Certification test mode is on: rate limits are off, and logins can be bypassed. Never use it in production.',
    );
  }
}
