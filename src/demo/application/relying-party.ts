import * as client from 'openid-client';

/** An application as the service registered it. */
export interface RegisteredClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
}

/** The values of a sign-in that must come back with the answer. */
export interface PendingSignIn {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

/** A user who signed in to the application. */
export interface ApplicationUser {
  readonly accessToken: string;
  /** The claims of the verified ID token. */
  readonly claims: Readonly<Record<string, unknown>>;
}

/**
 * The application's own address, so that its questions count apart from those of the visitor's
 * browser.
 */
const ADDRESS = '192.0.2.11';

/** An OpenID Connect relying party: authorization code flow with PKCE, state and nonce. */
export class RelyingParty {
  private constructor(
    private readonly redirectUri: string,
    private readonly configuration: client.Configuration,
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
    return new RelyingParty(redirectUri, configuration);
  }

  begin(): PendingSignIn {
    return {
      state: client.randomState(),
      nonce: client.randomNonce(),
      codeVerifier: client.randomPKCECodeVerifier(),
    };
  }

  /** Returns the address at the service to which a sign-in leads. */
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
   * Exchanges the code of an answer, and verifies the ID token. @throws Error for an answer that is
   * not valid
   */
  async complete(answer: URL, pending: PendingSignIn): Promise<ApplicationUser> {
    const tokens = await client.authorizationCodeGrant(this.configuration, answer, {
      pkceCodeVerifier: pending.codeVerifier,
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      idTokenExpected: true,
    });
    return { accessToken: tokens.access_token, claims: { ...tokens.claims() } };
  }

  /** Asks the service whether an access token is still active (RFC 7662). */
  async isActive({ accessToken }: ApplicationUser): Promise<boolean> {
    const { active } = await client.tokenIntrospection(this.configuration, accessToken);
    return active;
  }
}

const fetchFromOwnAddress: client.CustomFetch = (url, { headers, ...options }) =>
  fetch(url, { ...options, headers: { ...headers, 'x-forwarded-for': ADDRESS } } as RequestInit);
