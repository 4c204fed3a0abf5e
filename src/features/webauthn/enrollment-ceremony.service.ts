import { Inject, Injectable } from '@nestjs/common';
import { parse as uuidBytes } from 'uuid';
import { Clock } from '#platform/clock/clock.js';
import { newUuid } from '#platform/clock/random.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { CEREMONY_SECONDS, newChallenge } from '#domain/keys/authenticators/ceremony/challenge.js';
import { modelName } from '#domain/keys/authenticators/authenticator-models.js';
import { WebAuthnCeremonies } from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import type { CreationOptionsJSON } from '#domain/keys/authenticators/ceremony/webauthn-json.js';
import type { LiveSession } from '#domain/sessions/session.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import {
  Enrollment,
  type Enrolled,
  type NewKey,
} from '#domain/keys/enrollment/enrollment.service.js';
import { assertMayEnroll, assertUserVerified } from '#domain/keys/enrollment/enrollment-policy.js';
import { EnrollmentPasses } from '#domain/keys/enrollment-passes/enrollment-passes.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sameOriginTarget } from '#platform/http/request/same-origin.js';
import { browserRefusal } from './browser-refusal.js';
import type { CompleteEnrollment, FailedEnrollment, StartEnrollment } from './webauthn.schemas.js';

const PURPOSE = 'webauthn-enroll';

/** Returns the text that binds a WebAuthn ceremony to the session in which it began. */
export function sessionBinding(sessionId: string): string {
  return `session ${sessionId}`;
}

/**
 * Returns the user of a new credential, as the browser needs it (WebAuthn §5.4.3). The user handle
 * is the id of the user.
 */
export function userEntity(
  userId: string,
  { email, name }: { readonly email: string | null; readonly name: string | null },
): { id: Buffer; name: string; displayName: string } {
  return {
    id: Buffer.from(uuidBytes(userId)),
    name: email ?? '',
    displayName: name ?? email ?? '',
  };
}

/**
 * Verifies the attestation of a new key. A key that can verify its user, by PIN or fingerprint,
 * must have done so. The key gets the name that the user chose, or else the name of its model.
 *
 * @throws DomainError attestation_rejected and the other causes of a refused key
 */
export async function verifyNewKey(
  ceremonies: WebAuthnCeremonies,
  { credential, name }: CompleteEnrollment,
  ceremony: { readonly challenge: Buffer; readonly now: Date },
): Promise<NewKey> {
  const registration = await ceremonies.verifyRegistration({ credential, ...ceremony });
  assertUserVerified(registration);
  return { ...registration, name: name ?? modelName(registration.aaguid) ?? 'Security key' };
}

interface State {
  readonly challenge: string;
  /** The user handle that the key stores: the id that the user has or will get. */
  readonly userId: string;
  readonly redirectTo: string;
  /** The SHA-256 of the re-enrollment pass in base64url; absent without a pass. */
  readonly passHash?: string;
}

/** Runs the WebAuthn ceremony by which a user registers the first key (WebAuthn §7.1). */
@Injectable()
export class EnrollmentCeremony {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly states: SingleUseStates,
    private readonly ceremonies: WebAuthnCeremonies,
    private readonly enrollment: Enrollment,
    private readonly passes: EnrollmentPasses,
    private readonly clock: Clock,
  ) {}

  /**
   * Begins the enrollment of a key. A re-enrollment pass is only checked here; the completion of
   * the ceremony uses the pass up.
   *
   * @throws DomainError already_enrolled, enrollment_refused, enrollment_pass_required or
   *   enrollment_pass_invalid, each with an audit event
   */
  start(
    session: LiveSession,
    body: StartEnrollment,
    origin: AuditOrigin,
  ): Promise<{ state: string; publicKey: CreationOptionsJSON }> {
    return this.enrollment.recordingRefusal(session, origin, () => this.#start(session, body));
  }

  async #start(
    session: LiveSession,
    { redirect_to, pass }: StartEnrollment,
  ): Promise<{ state: string; publicKey: CreationOptionsJSON }> {
    assertMayEnroll(session, this.config.enrollment.allowedDomains);
    const passHash = await this.passes.check(session.user?.id, pass);
    const userId = session.user?.id ?? newUuid();
    const challenge = newChallenge();
    const publicKey = this.ceremonies.creationOptions({
      challenge,
      user: userEntity(userId, session.user ?? session.pendingIdentity),
      excludeCredentialIds: [],
    });
    const payload: State = {
      challenge: challenge.toString('base64url'),
      userId,
      redirectTo: sameOriginTarget(redirect_to, this.config.http.baseUrl),
      ...(passHash && { passHash: passHash.toString('base64url') }),
    };
    const state = await this.states.seal(PURPOSE, payload, {
      binding: sessionBinding(session.id),
      ttlSeconds: CEREMONY_SECONDS,
    });
    return { state, publicKey };
  }

  /**
   * Completes the enrollment: verifies the registration and enrolls the key.
   *
   * @throws DomainError invalid_state. All other errors are also recorded as audit events:
   *   attestation_rejected, other reasons to refuse a key, and those of Enrollment.enroll
   */
  async complete(
    session: LiveSession,
    body: CompleteEnrollment,
    origin: AuditOrigin,
  ): Promise<Enrolled & { redirectTo: string }> {
    const state = await this.states.redeem<State>(PURPOSE, body.state, {
      binding: sessionBinding(session.id),
    });
    return this.enrollment.recordingRefusal(session, origin, () =>
      this.#complete(session, body, state, origin),
    );
  }

  /**
   * Records that the browser created no credential. The state of this enrollment cannot be used
   * again.
   *
   * @throws DomainError invalid_state if the state is not valid, or was used before
   */
  async fail(session: LiveSession, body: FailedEnrollment, origin: AuditOrigin): Promise<void> {
    await this.states.redeem<State>(PURPOSE, body.state, { binding: sessionBinding(session.id) });
    await this.enrollment.recordRefusal(session, browserRefusal(body.error), origin);
  }

  async #complete(
    session: LiveSession,
    body: CompleteEnrollment,
    state: State,
    origin: AuditOrigin,
  ): Promise<Enrolled & { redirectTo: string }> {
    assertMayEnroll(session, this.config.enrollment.allowedDomains);
    const newKey = await verifyNewKey(this.ceremonies, body, {
      challenge: Buffer.from(state.challenge, 'base64url'),
      now: this.clock.now(),
    });
    const { userId: newUserId, passHash: hash } = state;
    const passHash = hash === undefined ? undefined : Buffer.from(hash, 'base64url');
    const enrolled = await this.enrollment.enroll({ session, newKey, newUserId, passHash }, origin);
    return { ...enrolled, redirectTo: this.#whereNext(enrolled.level, state.redirectTo) };
  }

  /**
   * Returns the URL that opens after the enrollment: `redirectTo` if the key verified its user (by
   * PIN or fingerprint), else the login page. If `redirectTo` is the start page, it is replaced by
   * the page that recommends a second key.
   */
  #whereNext(level: Enrolled['level'], redirectTo: string): string {
    const { baseUrl } = this.config.http;
    const target = redirectTo === `${baseUrl}/` ? `${baseUrl}/enroll/done` : redirectTo;
    if (level === 'verified') return target;
    return `${baseUrl}/login?redirect_to=${encodeURIComponent(target)}`;
  }
}
