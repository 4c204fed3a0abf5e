import * as client from 'openid-client';
import { z } from 'zod';
import type { Clock } from '#platform/clock/clock.js';
import type { OidcProviderConfig } from '#platform/config/config.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { assertIssuedToUs } from './openid/id-token-claims.js';
import {
  isMicrosoftIssuer,
  isNoTenant,
  isPersonalTenant,
  issuedByOwnTenant,
  tenantTemplate,
} from './openid/microsoft-issuer.js';
import { discoverProvider, type ProviderMetadata } from './openid/provider-discovery.js';
import { ProviderKeys } from './openid/provider-keys.js';
import { signInFailure } from './openid/sign-in-failure.js';
import { tenancyOf, type Tenancy } from './tenancy.js';
import type { UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { identityFromClaims, type Claims, type UpstreamIdentity } from './upstream-identity.js';
import type { Arrival, Departure, Remembered, UpstreamProvider } from './upstream-provider.js';

const REMEMBERED = z.object({ nonce: z.string(), codeVerifier: z.string() });

/**
 * An OpenID Connect provider. It uses the authorization code flow with PKCE (RFC 7636) and a nonce
 * (OpenID Connect Core 1.0 §3.1). The `iss` response parameter (RFC 9207) is checked if the
 * provider sends it.
 */
export class OidcUpstream implements UpstreamProvider {
  readonly slug: string;
  readonly name: string;
  readonly issuer: string;
  readonly tenancy: Tenancy;
  readonly domains: readonly string[] | undefined;
  readonly origin: string;

  private constructor(
    private readonly settings: OidcProviderConfig,
    private readonly redirectUri: string,
    private readonly metadata: ProviderMetadata,
    private readonly configuration: client.Configuration,
    private readonly keys: ProviderKeys,
    private readonly clock: Clock,
  ) {
    this.slug = settings.slug;
    this.name = settings.name;
    this.issuer = settings.issuer;
    this.tenancy = tenancyOf(settings.issuer);
    this.domains = settings.domains;
    this.origin = new URL(metadata.authorization_endpoint).origin;
  }

  /**
   * Fetches the discovery document of the provider and makes the provider from it.
   *
   * @throws ConfigProblems if the provider cannot be used as configured
   */
  static async connect(
    settings: OidcProviderConfig,
    redirectUri: string,
    http: UpstreamHttp,
    clock: Clock,
  ): Promise<OidcUpstream> {
    const metadata = await discoverProvider(settings, http);
    const configuration = await configure(settings, metadata);
    configuration[client.customFetch] = http.fetchForLibrary;
    configuration.timeout = http.answerTimeout;
    // An issuer with http can only be a loopback address here, because discovery refuses every
    // other one.
    if (metadata.issuer.startsWith('http:')) client.allowInsecureRequests(configuration);
    const keys = new ProviderKeys(
      { uri: metadata.jwks_uri, algorithms: metadata.id_token_signing_alg_values_supported },
      http,
      clock,
    );
    return new OidcUpstream(settings, redirectUri, metadata, configuration, keys, clock);
  }

  remember(): Remembered {
    return { nonce: client.randomNonce(), codeVerifier: client.randomPKCECodeVerifier() };
  }

  async depart({ state, remembered, loginHint }: Departure): Promise<URL> {
    const { nonce, codeVerifier } = REMEMBERED.parse(remembered);
    return client.buildAuthorizationUrl(this.configuration, {
      redirect_uri: this.redirectUri,
      scope: 'openid email profile',
      state,
      nonce,
      code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
      ...(loginHint === undefined ? {} : { login_hint: loginHint }),
    });
  }

  async arrive(arrival: Arrival): Promise<UpstreamIdentity> {
    try {
      return identityFromClaims(this.settings, await this.#redeem(arrival));
    } catch (error) {
      throw signInFailure(error);
    }
  }

  /**
   * Checks that a token from Microsoft is from the tenant of its issuer. For other providers it
   * does nothing.
   *
   * @throws DomainError sign_in_failed, and sign_in_refused for a personal account
   */
  #checkTenant({ iss, tid }: Claims): void {
    const { issuer } = this.settings;
    if (!isMicrosoftIssuer(issuer)) return;
    const template = tenantTemplate(issuer);
    if (isNoTenant(tid) || (template && !issuedByOwnTenant(template, iss, tid))) {
      throw new DomainError(
        'sign_in_failed',
        'The identity provider signed in an account of another tenant.',
      );
    }
    if (isPersonalTenant(tid)) {
      throw new DomainError(
        'sign_in_refused',
        'Personal Microsoft accounts cannot sign in here. Use the account of your organization.',
      );
    }
  }

  /**
   * Exchanges the authorization code for an ID token, verifies the token, and returns its claims.
   */
  async #redeem({ parameters, state, remembered }: Arrival): Promise<Claims> {
    const { nonce, codeVerifier } = REMEMBERED.parse(remembered);
    // The URL is made from the configured redirect URI, because the token endpoint compares it with
    // the redirect URI of the authorization request. The URL of the request is not used, because
    // its Host header could name any host.
    const url = new URL(`${this.redirectUri}?${parameters.toString()}`);
    const tokens = await client.authorizationCodeGrant(this.configuration, url, {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: codeVerifier,
      idTokenExpected: true,
    });
    // The code flow would allow the service to trust the TLS connection alone (OpenID Connect Core
    // 1.0 §3.1.3.7). The signature is nevertheless verified, too.
    await this.keys.verify(tokens.id_token ?? '');
    const claims: Claims = tokens.claims() ?? {};
    assertIssuedToUs(claims, this.settings.clientId, this.clock.seconds());
    this.#checkTenant(claims);
    if (claims['email'] !== undefined || !this.metadata.userinfo_endpoint) return claims;
    const more = await client.fetchUserInfo(
      this.configuration,
      tokens.access_token,
      String(claims['sub']),
    );
    // The e-mail address and the claim that it is verified must come from the same response. The
    // claim says nothing about an address in another response.
    const { email, email_verified, xms_edov, name, given_name, family_name } = more as Claims;
    const names = Object.entries({ name, given_name, family_name });
    const known = Object.fromEntries(names.filter(([, value]) => value !== undefined));
    return { ...claims, ...known, email, email_verified, xms_edov };
  }
}

/**
 * A URL on Microsoft's public host. If the discovery document seems to come from there,
 * openid-client replaces `{tenantid}` in the issuer by the tenant of a token.
 */
const ENTRA = new URL('https://login.microsoftonline.com/organizations/v2.0');

async function configure(
  settings: OidcProviderConfig,
  metadata: ProviderMetadata,
): Promise<client.Configuration> {
  const { clientId, clientSecret } = settings;
  const authentication = metadata.token_endpoint_auth_methods_supported.includes(
    'client_secret_basic',
  )
    ? client.ClientSecretBasic(clientSecret)
    : client.ClientSecretPost(clientSecret);
  if (!tenantTemplate(settings.issuer)) {
    return new client.Configuration(metadata, clientId, undefined, authentication);
  }
  // openid-client resolves `{tenantid}` only in a document from Microsoft's public host, and
  // sovereign clouds have other hosts. So the library gets the document that this service has
  // already fetched and checked.
  return client.discovery(ENTRA, clientId, undefined, authentication, {
    [client.customFetch]: () => Promise.resolve(Response.json(metadata)),
  });
}
