import { Body, Controller, HttpCode, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { invalidState } from '#domain/access/single-use/single-use-states.service.js';
import { ClientOrigin } from '#platform/http/request/client-origin.js';
import { SessionCookies } from '#platform/http/access/session-cookies.service.js';
import { ServiceMetrics } from '#platform/telemetry/service-metrics.service.js';
import { Caller } from '#platform/http/access/caller.js';
import { KIB, Route } from '#platform/http/routing/route.js';
import { EnrollmentCeremony } from './enrollment-ceremony.service.js';
import { keyJson } from './key-json.js';
import {
  COMPLETE_ENROLLMENT,
  FAILED_ENROLLMENT,
  START_ENROLLMENT,
  type CompleteEnrollment,
  type FailedEnrollment,
  type StartEnrollment,
} from './webauthn.schemas.js';

/**
 * Enrolls the first key of a user, in the session after the sign-in at the identity provider. A
 * user who already has a key is refused.
 */
@Controller('enroll/webauthn')
@Route({
  tier: 'authentication',
  body: { max: 32 * KIB },
  audience: 'ui',
  errors: 'problem',
  auth: { session: 'any', origin: 'ui' },
})
export class EnrollController {
  constructor(
    private readonly ceremony: EnrollmentCeremony,
    private readonly cookies: SessionCookies,
    private readonly metrics: ServiceMetrics,
  ) {}

  @Post('start')
  @Route({ summary: 'Begins the enrollment of a security key' })
  @HttpCode(200)
  start(
    @Caller() session: LiveSession,
    @Body({ schema: START_ENROLLMENT }) body: StartEnrollment,
    @ClientOrigin() origin: AuditOrigin,
  ) {
    return this.ceremony.start(session, body, origin);
  }

  /**
   * Records that the browser created no credential. The response has the reference that the user
   * can give to an admin.
   */
  @Post('failed')
  @Route({ summary: 'Reports that the browser created no credential' })
  @HttpCode(200)
  async fail(
    @Caller() session: LiveSession,
    @Body({ schema: FAILED_ENROLLMENT }) body: FailedEnrollment,
    @ClientOrigin() origin: AuditOrigin,
  ) {
    await this.ceremony.fail(session, body, origin);
    return { reference: origin.requestId };
  }

  /**
   * Completes the enrollment. The `state` of the request is bound to the session in which the
   * enrollment began, so a request without a session is refused. If several requests send the same
   * `state`, only one succeeds, because its success ends that session.
   */
  @Post('complete')
  @Route({
    failureStatus: 400,
    auth: { session: 'optional', origin: 'ui' },
    summary: 'Completes the enrollment of a security key',
  })
  @HttpCode(200)
  async complete(
    @Caller() session: LiveSession | undefined,
    @Body({ schema: COMPLETE_ENROLLMENT }) body: CompleteEnrollment,
    @ClientOrigin() origin: AuditOrigin,
    @Res({ passthrough: true }) response: Response,
  ) {
    if (!session) throw invalidState();
    const enrolled = await this.ceremony.complete(session, body, origin);
    this.metrics.countAuthEvent('enrollment');
    this.cookies.set(response, enrolled.session);
    this.cookies.rememberKeyUse(response);
    const current = enrolled.level === 'verified' ? enrolled.key.id : undefined;
    return { key: keyJson(enrolled.key, current), redirect_to: enrolled.redirectTo };
  }
}
