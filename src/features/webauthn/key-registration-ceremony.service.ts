import { Inject, Injectable } from '@nestjs/common';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { Authenticator } from '#domain/keys/authenticators/authenticators.repository.js';
import { CEREMONY_SECONDS, newChallenge } from '#domain/keys/authenticators/ceremony/challenge.js';
import type { CreationOptionsJSON } from '#domain/keys/authenticators/ceremony/webauthn-json.js';
import { WebAuthnCeremonies } from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import { MOST_KEYS, tooManyKeys } from '#domain/keys/enrollment/enrollment-policy.js';
import { Enrollment } from '#domain/keys/enrollment/enrollment.service.js';
import { SecurityKeys } from '#domain/sign-in/key-authentication/security-keys.service.js';
import type { VerifiedSession } from '#domain/sessions/session.js';
import { SingleUseStates } from '#domain/access/single-use/single-use-states.service.js';
import { Clock } from '#platform/clock/clock.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sameOriginTarget } from '#platform/http/request/same-origin.js';
import { sessionBinding, userEntity, verifyNewKey } from './enrollment-ceremony.service.js';
import type { CompleteEnrollment, Start } from './webauthn.schemas.js';

const PURPOSE = 'webauthn-register';

interface State {
  readonly challenge: string;
  readonly redirectTo: string;
}

/**
 * Runs the WebAuthn ceremony by which a user registers a further key, in a session that a key has
 * verified (WebAuthn §7.1). The session does not change.
 */
@Injectable()
export class KeyRegistrationCeremony {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly states: SingleUseStates,
    private readonly ceremonies: WebAuthnCeremonies,
    private readonly enrollment: Enrollment,
    private readonly keys: SecurityKeys,
    private readonly clock: Clock,
  ) {}

  /**
   * Begins the registration of a further key. The options list the keys that the user already has,
   * so that the browser refuses these.
   *
   * @throws DomainError limit_reached, with an audit event
   */
  start(
    session: VerifiedSession,
    body: Start,
    origin: AuditOrigin,
  ): Promise<{ state: string; publicKey: CreationOptionsJSON }> {
    return this.enrollment.recordingRefusal(session, origin, () => this.#start(session, body));
  }

  async #start(
    session: VerifiedSession,
    { redirect_to }: Start,
  ): Promise<{ state: string; publicKey: CreationOptionsJSON }> {
    const owned = await this.keys.listCredentials(session.user.id);
    if (owned.length >= MOST_KEYS) throw tooManyKeys();
    const challenge = newChallenge();
    const publicKey = this.ceremonies.creationOptions({
      challenge,
      user: userEntity(session.user.id, session.user),
      excludeCredentialIds: owned.map(({ id }) => id),
    });
    const payload: State = {
      challenge: challenge.toString('base64url'),
      redirectTo: sameOriginTarget(redirect_to ?? '/account/keys', this.config.http.baseUrl),
    };
    const state = await this.states.seal(PURPOSE, payload, {
      binding: sessionBinding(session.id),
      ttlSeconds: CEREMONY_SECONDS,
    });
    return { state, publicKey };
  }

  /**
   * Completes the registration: verifies the new key by the rules for enrollment, and adds it to
   * the user.
   *
   * @throws DomainError invalid_state. All other errors are also recorded as audit events:
   *   attestation_rejected, other reasons to refuse a key, and those of Enrollment.addKey
   */
  async complete(
    session: VerifiedSession,
    body: CompleteEnrollment,
    origin: AuditOrigin,
  ): Promise<{ key: Authenticator; redirectTo: string }> {
    const state = await this.states.redeem<State>(PURPOSE, body.state, {
      binding: sessionBinding(session.id),
    });
    const key = await this.enrollment.recordingRefusal(session, origin, async () => {
      const newKey = await verifyNewKey(this.ceremonies, body, {
        challenge: Buffer.from(state.challenge, 'base64url'),
        now: this.clock.now(),
      });
      return this.enrollment.addKey(session, newKey, origin);
    });
    return { key, redirectTo: state.redirectTo };
  }
}
