import { Module } from '@nestjs/common';
import { AccessModule } from '#domain/access/access.module.js';
import { KeysModule } from '#domain/keys/keys.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { SignInModule } from '#domain/sign-in/sign-in.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { KIB, UnmatchedPaths } from '#platform/http/routing/route.js';
import { EnrollController } from './enroll.controller.js';
import { EnrollmentCeremony } from './enrollment-ceremony.service.js';
import { KeysController } from './keys.controller.js';
import { LoginCeremony } from './login-ceremony.service.js';
import { LoginController } from './login.controller.js';
import { KeyRegistrationCeremony } from './key-registration-ceremony.service.js';
import { KeyRegistrationController } from './key-registration.controller.js';

/**
 * The rules for requests that match no route, at paths below those of the WebAuthn ceremonies of
 * enrollment and login.
 */
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
  imports: [AccessModule, KeysModule, HttpModule, SessionsModule, SignInModule],
  controllers: [EnrollController, LoginController, KeysController, KeyRegistrationController],
  providers: [EnrollmentCeremony, LoginCeremony, KeyRegistrationCeremony],
})
export class WebAuthnModule {}
