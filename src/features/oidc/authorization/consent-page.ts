import type { Consent } from '#domain/oauth/clients/dynamic-clients.repository.js';
import type { WaitingApplication } from '#domain/oauth/grants/pending-logins.js';
import type { ResourceOwner } from '#domain/oauth/grants/resource-owner.js';
import { CLAIMS_OF_SCOPES } from '../protocol/claims.js';
import { scopeWords } from '../protocol/scopes.js';
import type { Interaction } from './login-prompt.js';

/** The data that the template of the consent page shows. */
export interface ConsentPage {
  readonly uid: string;
  readonly client: WaitingApplication;
  readonly user: { readonly email: string; readonly name: string | null };
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
}

/**
 * Builds the data of the consent page: the application, the user, and all access that the request
 * asks for.
 */
export function consentPage(
  { uid, params }: Interaction,
  { email, name }: ResourceOwner,
  client: WaitingApplication,
): ConsentPage {
  const scopes = scopeWords(params['scope'] as string | undefined);
  const claims = scopesOfClaims(params['claims'] as string | undefined);
  return {
    uid,
    client,
    user: { email: email ?? '', name },
    scopes: [...new Set([...scopes, ...claims])],
    resources: [params['resource'] ?? []].flat().map(String),
  };
}

/**
 * Returns the consent that a user gives on the consent page: all access that the request asks for.
 */
export function consentTo({ params, iat }: Interaction): Consent {
  return {
    scopes: scopeWords(params['scope'] as string | undefined),
    claims: claimsOf(params['claims'] as string | undefined),
    redirectUri: String(params['redirect_uri']),
    shownAt: iat,
  };
}

/**
 * Returns the names of the single claims that a request asks for in its parameter `claims` (OpenID
 * Connect Core §5.5).
 */
function claimsOf(claims: string | undefined): string[] {
  const { id_token: idToken, userinfo } = JSON.parse(claims ?? '{}') as Record<string, object>;
  return Object.keys({ ...idToken, ...userinfo });
}

/**
 * Returns the scopes to which the single claims of a request belong (OpenID Connect Core §5.5). The
 * consent page shows access by scope.
 */
function scopesOfClaims(claims: string | undefined): string[] {
  const names = new Set(claimsOf(claims));
  return Object.entries(CLAIMS_OF_SCOPES)
    .filter(([, known]) => known.some((claim) => names.has(claim)))
    .map(([scope]) => scope);
}
