import { redirectUriProblem } from '../../protocol/clients/redirect-uri-rule.js';
import { isInOriginOf, isStartAddress } from '#domain/oauth/applications/launch-address.js';
import { parseDn } from '../../protocol/clients/subject-dn.js';
import {
  TYPES,
  type ApplicationType,
  type Registration,
} from '#domain/oauth/applications/registration.js';

/**
 * Finds the fault of a registration by the rules of our own application types. The rules of OAuth
 * itself are checked by the OAuth library.
 *
 * @returns a sentence for the user, or undefined for a registration without a fault
 */
export function problemOf(registration: Registration): string | undefined {
  const { type, grant_types: grants, auth_method: method } = registration;
  const { isPublic, grantTypes } = TYPES[type];
  const known: readonly string[] = grantTypes;
  const stray = grants.find((grant) => !known.includes(grant));
  if (stray !== undefined || grants.length === 0) {
    return `grant_types: ${article(type)} application has ${known.join(' or ')}`;
  }
  if (isPublic !== (method === 'none')) {
    return isPublic
      ? `auth_method: ${article(type)} application keeps no secret and has none`
      : `auth_method: ${article(type)} application must prove who it is`;
  }
  return addressProblem(registration) ?? certificateProblem(registration);
}

function addressProblem(registration: Registration): string | undefined {
  const { type, profile, grant_types: grants, redirect_uris: redirects } = registration;
  const kind = { isNative: TYPES[type].isNative, isFapi: profile === 'fapi2' };
  const lists = {
    redirect_uris: redirects,
    post_logout_redirect_uris: registration.post_logout_redirect_uris,
  };
  for (const [name, uris] of Object.entries(lists)) {
    if (uris.length > 0 && !grants.includes('authorization_code')) {
      return `${name}: without authorization_code no user is redirected`;
    }
    for (const uri of uris) {
      const problem = redirectUriProblem(uri, kind);
      if (problem !== undefined) return `${name}: ${problem}`;
    }
  }
  return startProblem(registration) ?? logoutProblem(registration);
}

/**
 * Finds the fault of the URL at which a login to the application starts (`initiate_login_uri`),
 * which members follow as a link. It must have the origin of a redirect URI, so that the link leads
 * to the application.
 */
function startProblem(registration: Registration): string | undefined {
  const { initiate_login_uri: start, redirect_uris: redirects } = registration;
  if (start === null) return undefined;
  if (!isStartAddress(start)) return 'initiate_login_uri: must be a whole URL with https';
  return isInOriginOf(start, redirects)
    ? undefined
    : 'initiate_login_uri: must be at the same scheme, host and port as one of the redirect_uris';
}

/**
 * Finds the fault of the URL for logout tokens. A service application has no logins of people, so
 * it must have no such URL.
 */
function logoutProblem({ type, backchannel_logout_uri: uri }: Registration): string | undefined {
  return type === 'service' && uri !== null
    ? 'backchannel_logout_uri: a service application signs no person in'
    : undefined;
}

function certificateProblem(registration: Registration): string | undefined {
  const { auth_method: method, tls_client_auth_subject_dn: subject } = registration;
  if ((method === 'tls_client_auth') !== (subject !== null)) {
    return 'tls_client_auth_subject_dn: goes with the auth_method tls_client_auth, and only with it';
  }
  if (subject !== null && !parseDn(subject)) {
    return 'tls_client_auth_subject_dn: must be a distinguished name as RFC 4514 writes it';
  }
  return undefined;
}

function article(type: ApplicationType): string {
  return type === 'spa' ? 'an spa' : `a ${type}`;
}
