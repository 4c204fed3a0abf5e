import { Injectable } from '@nestjs/common';
import { CEREMONY_SECONDS, newChallenge } from '#domain/authenticators/ceremony/challenge.js';
import { WebAuthnCeremonies } from '#domain/authenticators/webauthn-ceremonies.service.js';
import type { RequestOptionsJSON } from '#domain/authenticators/ceremony/webauthn-json.js';
import { SingleUseStates } from '#domain/single-use/single-use-states.service.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { FIDO2_GRANT } from '../engine/configuration.js';
import { OidcProvider } from '../engine/oidc-provider.service.js';
import type { Challenge } from './fido2.schemas.js';

const PURPOSE = 'fido2-grant';

/** What a challenge was made for. */
export interface IssuedChallenge {
  readonly challenge: Buffer;
  /** The key that the token request must prove, where one was named. */
  readonly jkt: string | undefined;
}

interface State {
  readonly challenge: string;
  readonly jkt?: string;
}

/** Challenges of the FIDO2 grant: each for one client, for one key where it names one, and for one use. */
@Injectable()
export class Fido2Challenges {
  constructor(
    private readonly oidc: OidcProvider,
    private readonly states: SingleUseStates,
    private readonly ceremonies: WebAuthnCeremonies,
  ) {}

  /**
   * Makes a challenge for a client, which authenticates itself when it redeems it. Making one writes nothing, and tells nothing
   * of anybody: the key itself says whose it is.
   *
   * @throws DomainError invalid_client for a client that there is not, unauthorized_client for one without this grant
   */
  async issue({
    client_id: clientId,
    dpop_jkt: jkt,
  }: Challenge): Promise<{ state: string; publicKey: RequestOptionsJSON }> {
    const client = await this.oidc.provider.Client.find(clientId);
    if (!client) throw new DomainError('invalid_client', 'There is no such client.');
    if (!client.grantTypeAllowed(FIDO2_GRANT)) {
      throw new DomainError('unauthorized_client', 'This client is not registered for this grant.');
    }
    const challenge = newChallenge();
    const payload: State = {
      challenge: challenge.toString('base64url'),
      ...(jkt === undefined ? {} : { jkt }),
    };
    const state = await this.states.seal(PURPOSE, payload, {
      binding: bindingOf(clientId),
      ttlSeconds: CEREMONY_SECONDS,
    });
    const publicKey = this.ceremonies.requestOptions({ challenge, userVerification: 'required' });
    return { state, publicKey };
  }

  /** Spends a state. @throws DomainError invalid_state for one that is not good for this client, now and here */
  async redeem(clientId: string, state: string): Promise<IssuedChallenge> {
    const { challenge, jkt } = await this.states.redeem<State>(PURPOSE, state, {
      binding: bindingOf(clientId),
    });
    return { challenge: Buffer.from(challenge, 'base64url'), jkt };
  }
}

function bindingOf(clientId: string): string {
  return `client ${clientId}`;
}
