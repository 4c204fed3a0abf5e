import { Inject, Injectable } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import { AuthenticatorsRepository } from '#domain/authenticators/authenticators.repository.js';
import { CEREMONY_SECONDS, newChallenge } from '#domain/authenticators/ceremony/challenge.js';
import { WebAuthnCeremonies } from '#domain/authenticators/webauthn-ceremonies.service.js';
import type {
  RequestOptionsJSON,
  UserVerification,
} from '#domain/authenticators/ceremony/webauthn-json.js';
import type { LiveSession } from '#domain/sessions/session.js';
import type { OpenedSession } from '#domain/sessions/sessions.service.js';
import { SingleUseStates, invalidState } from '#domain/single-use/single-use-states.service.js';
import { KeyAuthentication } from '#domain/key-authentication/key-authentication.service.js';
import { CONFIG, type Config } from '#platform/config/config.js';
import { sameOriginTarget } from '#platform/http/request/same-origin.js';
import { browserBinding, sessionBinding } from './ceremony-state.js';
import type { CompleteLogin, Start } from './webauthn.schemas.js';

const PURPOSE = 'webauthn-login';

interface State {
  readonly challenge: string;
  readonly redirectTo: string;
}

/** Who asks for a login: somebody in a session of theirs, or a browser without one. */
export interface LoginAsker {
  readonly session: LiveSession | undefined;
  /** The browser's secret, which stands in where there is no session. */
  readonly browser: string | undefined;
}

/** The assertion ceremony of a login or a step-up (WebAuthn §7.2). */
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
   * Without a session the key itself says whose it is: a discoverable credential, its user verified. In a session,
   * its owner's keys are asked for, and one that cannot verify its user may assert presence.
   */
  async start(
    asker: LoginAsker,
    { redirect_to }: Start,
  ): Promise<{ state: string; publicKey: RequestOptionsJSON }> {
    const challenge = newChallenge();
    const owned = asker.session?.user
      ? await this.keys.listCredentials(this.manager, asker.session.user.id)
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
      binding: bindingOf(asker),
      ttlSeconds: CEREMONY_SECONDS,
    });
    return { state, publicKey };
  }

  /**
   * @returns the new session, or undefined where the present one stays (a step-up), and where to go
   * @throws DomainError invalid_state and what LogIn refuses
   */
  async complete(
    asker: LoginAsker,
    body: CompleteLogin,
    origin: AuditOrigin,
  ): Promise<{ opened: OpenedSession | undefined; redirectTo: string }> {
    const state = await this.states.redeem<State>(PURPOSE, body.state, {
      binding: bindingOf(asker),
    });
    const opened = await this.keyAuthentication.logIn(
      {
        credential: body.credential,
        challenge: Buffer.from(state.challenge, 'base64url'),
        session: asker.session,
      },
      origin,
    );
    return { opened, redirectTo: state.redirectTo };
  }
}

function verificationFor(
  owned: readonly { readonly userVerification: boolean }[],
): UserVerification {
  if (owned.every((key) => key.userVerification)) return 'required'; // nobody's in particular included
  return owned.some((key) => key.userVerification) ? 'preferred' : 'discouraged';
}

/** @throws DomainError invalid_state when there is neither session nor browser secret to bind to */
function bindingOf({ session, browser }: LoginAsker): string {
  if (session) return sessionBinding(session.id);
  if (browser === undefined) throw invalidState();
  return browserBinding(browser);
}
