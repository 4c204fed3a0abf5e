import { Inject, Injectable } from '@nestjs/common';
import { EntityManager } from '#platform/database/statements/typeorm.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuthenticatorsRepository } from '#domain/keys/authenticators/authenticators.repository.js';
import { CEREMONY_SECONDS, newChallenge } from '#domain/keys/authenticators/ceremony/challenge.js';
import { WebAuthnCeremonies } from '#domain/keys/authenticators/webauthn-ceremonies.service.js';
import type {
  RequestOptionsJSON,
  UserVerification,
} from '#domain/keys/authenticators/ceremony/webauthn-json.js';
import type { LiveSession } from '#domain/sessions/session.js';
import type { OpenedSession } from '#domain/sessions/sessions.service.js';
import {
  SingleUseStates,
  invalidState,
} from '#domain/access/single-use/single-use-states.service.js';
import { KeyAuthentication } from '#domain/sign-in/key-authentication/key-authentication.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sameOriginTarget } from '#platform/http/request/same-origin.js';
import { sessionBinding } from './enrollment-ceremony.service.js';
import type { CompleteLogin, Start } from './webauthn.schemas.js';

const PURPOSE = 'webauthn-login';

interface State {
  readonly challenge: string;
  readonly redirectTo: string;
}

/**
 * The sender of a login request: its session, or the browser if there is no session. The WebAuthn
 * ceremony is bound to this sender, so that no other sender can complete it.
 */
export interface LoginRequester {
  readonly session: LiveSession | undefined;
  /**
   * The secret in a cookie of the browser, to which the ceremony is bound if there is no session.
   */
  readonly browser: string | undefined;
}

/**
 * Runs the WebAuthn ceremony by which a user logs in, or touches the key again in a session
 * (step-up; WebAuthn §7.2).
 */
@Injectable()
export class LoginCeremony {
  constructor(
    @Inject(CONFIG) private readonly config: Config,
    private readonly manager: EntityManager,
    private readonly states: SingleUseStates,
    private readonly ceremonies: WebAuthnCeremonies,
    private readonly keys: AuthenticatorsRepository,
    private readonly keyAuthentication: KeyAuthentication,
  ) {}

  /**
   * Begins a login. Without a session, the key identifies the user, so it must have a discoverable
   * credential and verify its user by PIN or fingerprint. In a session, the options list the keys
   * of the user. For a key that cannot verify its user, a touch is enough.
   */
  async start(
    requester: LoginRequester,
    { redirect_to }: Start,
  ): Promise<{ state: string; publicKey: RequestOptionsJSON }> {
    const challenge = newChallenge();
    const owned = requester.session?.user
      ? await this.keys.listCredentials(this.manager, requester.session.user.id)
      : [];
    const publicKey = this.ceremonies.requestOptions({
      challenge,
      allowCredentials: owned,
      userVerification: verificationFor(owned),
    });
    const payload: State = {
      challenge: challenge.toString('base64url'),
      redirectTo: sameOriginTarget(redirect_to, this.config.http.baseUrl),
    };
    const state = await this.states.seal(PURPOSE, payload, {
      binding: bindingOf(requester),
      ttlSeconds: CEREMONY_SECONDS,
    });
    return { state, publicKey };
  }

  /**
   * Completes a login: verifies the assertion of the key, and opens a session.
   *
   * @returns the new session and the next URL; for a step-up the session is undefined, because the
   *   present session is kept
   * @throws DomainError invalid_state, and the errors of KeyAuthentication.logIn
   */
  async complete(
    requester: LoginRequester,
    body: CompleteLogin,
    origin: AuditOrigin,
  ): Promise<{ opened: OpenedSession | undefined; redirectTo: string }> {
    const state = await this.states.redeem<State>(PURPOSE, body.state, {
      binding: bindingOf(requester),
    });
    const opened = await this.keyAuthentication.logIn(
      {
        credential: body.credential,
        challenge: Buffer.from(state.challenge, 'base64url'),
        session: requester.session,
      },
      origin,
    );
    return { opened, redirectTo: state.redirectTo };
  }
}

function verificationFor(
  owned: readonly { readonly userVerification: boolean }[],
): UserVerification {
  if (owned.every((key) => key.userVerification)) return 'required';
  return owned.some((key) => key.userVerification) ? 'preferred' : 'discouraged';
}

/**
 * Returns the text that binds a WebAuthn ceremony to a session or a browser.
 * @throws DomainError invalid_state for a request that has neither
 */
function bindingOf({ session, browser }: LoginRequester): string {
  if (session) return sessionBinding(session.id);
  if (browser === undefined) throw invalidState();
  return `browser ${browser}`;
}
