import { Module } from '@nestjs/common';
import { AuthenticatorsModule } from '#domain/authenticators/authenticators.module.js';
import { SessionsModule } from '#domain/sessions/sessions.module.js';
import { UsersModule } from '#domain/users/users.module.js';
import { HttpModule } from '#platform/http/http.module.js';
import { EnrollController } from './enroll.controller.js';
import { EnrollmentCeremony } from './enrollment-ceremony.service.js';
import { KeysController } from './keys.controller.js';
import { LoginCeremony } from './login-ceremony.service.js';
import { LoginController } from './login.controller.js';

/**
 * /enroll/webauthn/*, /login/webauthn/* and /v1/keys: the WebAuthn Level 2 ceremonies in the platform's own JSON
 * (`RegistrationResponseJSON`, `AuthenticationResponseJSON`).
 * It does not decide which keys are genuine (domain/authenticators) nor who may have one (domain/users).
 */
@Module({
  imports: [AuthenticatorsModule, HttpModule, SessionsModule, UsersModule],
  controllers: [EnrollController, LoginController, KeysController],
  providers: [EnrollmentCeremony, LoginCeremony],
})
export class WebAuthnModule {}
