import { Body, Controller, HttpCode, Post } from '@nestjs/common';
import { z } from 'zod';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { USER_ACCESS_BY_TOUCH } from '#domain/sessions/recent-touch.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { Caller } from '#platform/http/access/caller.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { KEY_JSON, keyJson } from './key-json.js';
import { KeyRegistrationCeremony } from './key-registration-ceremony.service.js';
import {
  COMPLETE_ENROLLMENT,
  CREATION_OPTIONS,
  START,
  type CompleteEnrollment,
  type Start,
} from './webauthn.schemas.js';

/** The JSON of the answer that begins the registration of a key. */
const STARTED_JSON = z
  .object({
    state: z.string().describe('The state to send back with the credential.'),
    publicKey: CREATION_OPTIONS,
  })
  .describe('The options for `navigator.credentials.create()`.');

/** The JSON of the answer after a key was registered. */
const REGISTERED_JSON = z
  .object({
    key: KEY_JSON,
    redirect_to: z.string().describe('The path at which the browser goes on.'),
  })
  .describe('The registered key.');

/**
 * Registers a further key of a user. The user must have touched a registered key within the last
 * minute.
 */
@Controller('v1/keys/register')
@Route({
  tier: 'authentication',
  body: { max: 32 * KIB },
  audience: 'api',
  errors: 'problem',
  auth: USER_ACCESS_BY_TOUCH,
})
export class KeyRegistrationController {
  constructor(private readonly ceremony: KeyRegistrationCeremony) {}

  @Post('start')
  @Route({
    operation: 'startKeyRegistration',
    summary: 'Begins the registration of a further security key',
    answers: { 200: STARTED_JSON },
    refusals: ['limit_reached', 'enrollment_refused'],
  })
  @HttpCode(200)
  start(
    @Caller() session: VerifiedSession,
    @Body({ schema: START }) body: Start,
    @ClientOrigin() origin: AuditOrigin,
  ) {
    return this.ceremony.start(session, body, origin);
  }

  @Post('complete')
  @Route({
    operation: 'completeKeyRegistration',
    summary: 'Completes the registration of a further security key',
    answers: { 200: REGISTERED_JSON },
    refusals: [
      'invalid_state',
      'attestation_rejected',
      'attestation_missing',
      'device_passkey',
      'model_not_allowed',
      'user_verification_missing',
      'account_inactive',
      'credential_exists',
      'limit_reached',
      'enrollment_refused',
    ],
  })
  @HttpCode(200)
  async complete(
    @Caller() session: VerifiedSession,
    @Body({ schema: COMPLETE_ENROLLMENT }) body: CompleteEnrollment,
    @ClientOrigin() origin: AuditOrigin,
  ) {
    const { key, redirectTo } = await this.ceremony.complete(session, body, origin);
    return { key: keyJson(key, session.authenticatorId), redirect_to: redirectTo };
  }
}
