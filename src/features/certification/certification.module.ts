import { Logger, Module, type DynamicModule, type OnModuleInit, type Type } from '@nestjs/common';
import { KeyAuthenticationModule } from '#domain/key-authentication/key-authentication.module.js';
import type { Config } from '#platform/config/config.js';
import { HttpModule } from '#platform/http/http.module.js';
import { Views } from '#platform/http/views/views.service.js';
import { CertificationController } from './certification.controller.js';
import { CERTIFICATION_TOKEN } from './certification-token.js';

/**
 * /certification/*: what an OpenID conformance suite, which has no security key, uses in place of a login. It is there in
 * certification test mode alone, which also turns the rate limits off and is never for production: every start in that mode
 * says so.
 */
@Module({})
export class CertificationModule implements OnModuleInit {
  /**
   * @param pendingLogins the module that exports the PendingLogins: what waits for a login is not this one's to know
   * @returns no module at all without a token: the paths do not exist then
   */
  static forRoot({ token }: Config['certification'], pendingLogins: Type): DynamicModule[] {
    if (token === undefined) return [];
    return [
      {
        module: CertificationModule,
        imports: [HttpModule, KeyAuthenticationModule, pendingLogins],
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
