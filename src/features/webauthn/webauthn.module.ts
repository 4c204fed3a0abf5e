import { Module } from '@nestjs/common';
import { AuthenticatorsModule } from '#domain/keys/authenticators/authenticators.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { EnrollmentPassesModule } from '#domain/keys/enrollment-passes/enrollment-passes.module.js';
import { EnrollmentModule } from '#domain/keys/enrollment/enrollment.module.js';
import { KeyAuthenticationModule } from '#domain/sign-in/key-authentication/key-authentication.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { EnrollController } from './enroll.controller.js';
import { EnrollmentCeremony } from './enrollment-ceremony.service.js';
import { KeysController } from './keys.controller.js';
import { LoginCeremony } from './login-ceremony.service.js';
import { LoginController } from './login.controller.js';
import { KeyRegistrationCeremony } from './key-registration-ceremony.service.js';
import { KeyRegistrationController } from './key-registration.controller.js';

/** The rules of unmatched requests below the two ceremonies. */
const CEREMONY = {
  tier: 'authentication',
  body: { max: 32 * KIB },
  audience: 'ui',
  errors: 'problem',
} as const;

@UnmatchedPaths({
  '/v1/keys/*': { tier: 'general' },
  '/v1/keys/register/*': { tier: 'authentication', body: { max: 32 * KIB } },
  '/enroll/webauthn/*': CEREMONY,
  '/login/webauthn/*': CEREMONY,
})
@Module({
  imports: [
    AuthenticatorsModule,
    HttpModule,
    SessionsModule,
    EnrollmentModule,
    EnrollmentPassesModule,
    KeyAuthenticationModule,
  ],
  controllers: [EnrollController, LoginController, KeysController, KeyRegistrationController],
  providers: [EnrollmentCeremony, LoginCeremony, KeyRegistrationCeremony],
})
export class WebAuthnModule {}
