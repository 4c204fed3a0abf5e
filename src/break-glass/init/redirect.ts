import type { OidcProviderConfig } from '#platform/config/config.js';
import { systemRandom } from '#platform/clock/random.js';
import type { UpstreamAnswer, UpstreamHttp } from '#platform/outbound/upstream-http.js';
import { discoverProvider } from '#domain/providers/openid/provider-discovery.js';

/**
 * The errors of a provider that knows the client and the redirect URI, but cannot go on without
 * showing a page to the user (OpenID Connect Core 1.0 §3.1.2.6).
 */
const NEEDS_A_USER: ReadonlySet<string> = new Set([
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
]);

/**
 * The answer of a provider about the redirect URI. It is `unknown` if the response shows neither
 * that the URI is registered nor that it is refused.
 */
export type RedirectAnswer =
  | { readonly kind: 'registered' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unknown' };

/**
 * Finds out if a redirect URI is registered at a provider, by an authorization request that shows
 * no page (`prompt=none`). If the URI is registered, the provider redirects to it, even with an
 * error. Otherwise it must not redirect to it (RFC 6749 §4.1.2.1).
 *
 * @throws ConfigProblems if the discovery document is missing or wrong, and the errors of undici
 */
export async function askForRedirect(
  provider: Pick<OidcProviderConfig, 'slug' | 'issuer' | 'clientId'>,
  redirectUri: string,
  http: Pick<UpstreamHttp, 'fetch'>,
): Promise<RedirectAnswer> {
  const { authorization_endpoint: endpoint } = await discoverProvider(provider, http);
  const address = new URL(endpoint);
  const parameters = {
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: redirectUri,
    scope: 'openid email profile',
    prompt: 'none',
    state: systemRandom.token(),
    nonce: systemRandom.token(),
    // The challenge is random and has no verifier, so that no code that comes back can be redeemed.
    code_challenge: systemRandom.token(),
    code_challenge_method: 'S256',
  };
  for (const [name, value] of Object.entries(parameters)) address.searchParams.set(name, value);
  const answer = await http.fetch(address.href, {
    method: 'GET',
    headers: { accept: 'text/html' },
  });
  return judge(answer, address, redirectUri);
}

function judge(
  { status, headers }: Pick<UpstreamAnswer, 'status' | 'headers'>,
  asked: URL,
  redirectUri: string,
): RedirectAnswer {
  if (status >= 400 && status < 500) {
    return { kind: 'refused', reason: `it answers ${status} to an authorization request` };
  }
  const location = URL.parse(headers.get('location') ?? '', asked.href);
  const expected = new URL(redirectUri);
  if (
    status < 300 ||
    status >= 400 ||
    location?.origin !== expected.origin ||
    location.pathname !== expected.pathname
  ) {
    return { kind: 'unknown' };
  }
  const error = location.searchParams.get('error');
  if (error === null || NEEDS_A_USER.has(error)) return { kind: 'registered' };
  return {
    kind: 'refused',
    reason: `it answers with the error ${JSON.stringify(error.slice(0, 100))}`,
  };
}
