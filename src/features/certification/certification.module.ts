import { Logger, Module, type DynamicModule, type OnModuleInit } from '@nestjs/common';
import type { Config } from '#platform/config/config.js';
import { CertificationController } from './certification.controller.js';
import { CERTIFICATION_TOKEN } from './certification-token.js';

/**
 * /certification/*: what an OpenID conformance suite, which has no security key, uses in place of a login. It is there in
 * certification test mode alone, which also turns the rate limits off and is never for production: every start in that mode
 * says so.
 */
@Module({})
export class CertificationModule implements OnModuleInit {
  /** @returns no module at all without a token: the paths do not exist then */
  static forRoot({ token }: Config['certification']): DynamicModule[] {
    if (token === undefined) return [];
    return [
      {
        module: CertificationModule,
        controllers: [CertificationController],
        providers: [{ provide: CERTIFICATION_TOKEN, useValue: token }],
      },
    ];
  }

  onModuleInit(): void {
    new Logger('security').warn(
      'Certification test mode is on: rate limits are off, and logins can be bypassed. Never use it in production.',
    );
  }
}
