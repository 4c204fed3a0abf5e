import { createRemoteJWKSet, jwtVerify, type JWTVerifyGetKey } from 'jose';
import * as client from 'openid-client';
import { systemClock } from '@svc/stand-ins/clock';

/** The demo's application, as it is registered at the service. */
export interface RegisteredClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
}

/**
 * The random values with which the application begins a sign-in, and later verifies its response.
 */
export interface PendingSignIn {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** The claims of a verified ID token. */
export type UserClaims = Readonly<Record<string, unknown>>;

/** The session that a logout token ends; without `sid`, every session of the user. */
export interface EndedSession {
  readonly sub: string | undefined;
  readonly sid: string | undefined;
}

const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';

/**
 * The IP address that the application's requests state in X-Forwarded-For (an address for
 * documentation, RFC 5737). It differs from that of the visitor's browser, so that the two have
 * separate rate limits.
 */
const ADDRESS = '192.0.2.11';

/**
 * An OpenID Connect relying party, as a real application contains one: authorization code flow with
 * PKCE, state and nonce, and back-channel logout.
 */
export class RelyingParty {
  /**
   * The ids (`jti`) of the logout tokens that were received, so that no token is accepted twice.
   * The value is the time at which the token expires, in seconds since 1970.
   */
  readonly #seen = new Map<string, number>();

  private constructor(
    private readonly redirectUri: string,
    private readonly configuration: client.Configuration,
    private readonly keys: JWTVerifyGetKey,
  ) {}

  static async discover(registered: RegisteredClient): Promise<RelyingParty> {
    const { issuer, clientId, clientSecret, redirectUri } = registered;
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      clientSecret,
      client.ClientSecretBasic(clientSecret),
      { execute: [client.allowInsecureRequests], [client.customFetch]: fetchFromOwnAddress },
    );
    const jwksUri = configuration.serverMetadata().jwks_uri ?? '';
    const keys = createRemoteJWKSet(new URL(jwksUri), { headers: { 'x-forwarded-for': ADDRESS } });
    return new RelyingParty(redirectUri, configuration, keys);
  }

  begin(): PendingSignIn {
    return {
      state: client.randomState(),
      nonce: client.randomNonce(),
      codeVerifier: client.randomPKCECodeVerifier(),
    };
  }

  /** Returns the URL at the service to which the browser goes to sign in. */
  async authorizationUrl({ state, nonce, codeVerifier }: PendingSignIn): Promise<URL> {
    return client.buildAuthorizationUrl(this.configuration, {
      redirect_uri: this.redirectUri,
      scope: 'openid email profile',
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    });
  }

  /**
   * Exchanges the code of the response, and verifies the ID token.
   *
   * @throws Error for a response that is not valid
   */
  async complete(answer: URL, pending: PendingSignIn): Promise<UserClaims> {
    const tokens = await client.authorizationCodeGrant(this.configuration, answer, {
      pkceCodeVerifier: pending.codeVerifier,
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      idTokenExpected: true,
    });
    return { ...tokens.claims() };
  }

  /**
   * Verifies a logout token (OpenID Connect Back-Channel Logout §2.6).
   *
   * @throws Error for a token that is not valid, or that was received before
   */
  async ended(logoutToken: string): Promise<EndedSession> {
    const { issuer } = this.configuration.serverMetadata();
    const { payload } = await jwtVerify(logoutToken, this.keys, {
      issuer,
      audience: this.configuration.clientMetadata().client_id,
      typ: 'logout+jwt',
      requiredClaims: ['iat', 'exp', 'jti'],
    });
    const {
      sub,
      sid,
      jti = '',
      exp = 0,
      events,
      nonce,
    } = payload as Record<string, unknown> & typeof payload;
    if (typeof (events as Record<string, unknown> | undefined)?.[LOGOUT_EVENT] !== 'object')
      throw new Error('it is no logout');
    if (nonce !== undefined || (sub === undefined && sid === undefined))
      throw new Error('it has a nonce, or names nothing');
    const now = systemClock.seconds();
    for (const [id, until] of this.#seen) if (until < now) this.#seen.delete(id);
    if (this.#seen.has(jti)) throw new Error('it came before');
    this.#seen.set(jti, exp);
    return { sub, sid: typeof sid === 'string' ? sid : undefined };
  }
}

const fetchFromOwnAddress: client.CustomFetch = (url, { headers, ...options }) =>
  fetch(url, { ...options, headers: { ...headers, 'x-forwarded-for': ADDRESS } } as RequestInit);
