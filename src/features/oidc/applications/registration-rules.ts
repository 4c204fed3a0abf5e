import { TYPES, type ApplicationType, type Registration } from './registration.js';
import { parseDn } from '#oidc/mutual-tls/subject-dn.js';

/** A host that only this very machine answers to (RFC 8252 §7.3). */
const LOOPBACKS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * What is wrong with a registration, in a sentence for whoever wrote it: what our own types of application say, beside what the
 * library checks of its metadata.
 *
 * @returns undefined where nothing is
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
  const { type, grant_types: grants, redirect_uris: redirects } = registration;
  const lists = {
    redirect_uris: redirects,
    post_logout_redirect_uris: registration.post_logout_redirect_uris,
  };
  for (const [name, uris] of Object.entries(lists)) {
    if (uris.length > 0 && !grants.includes('authorization_code')) {
      return `${name}: without authorization_code nobody is sent back`;
    }
    for (const uri of uris) {
      const problem = redirectProblem(uri, type);
      if (problem !== undefined) return `${name}: ${problem}`;
    }
  }
  return undefined;
}

/**
 * What is wrong with an address that people are sent back to (RFC 8252 §7, RFC 9700 §2.1): codes travel there, and it is
 * compared to the letter.
 */
function redirectProblem(uri: string, type: ApplicationType): string | undefined {
  const url = URL.parse(uri);
  if (!url || !/^[!-~]+$/.test(uri)) return 'must be whole addresses, percent-encoded';
  if (/[*\\]/.test(uri)) return 'is compared to the letter and takes no wildcard';
  if (uri.includes('#')) return 'must not have a fragment';
  if (url.username !== '' || url.password !== '') return 'must not name a user';
  if (url.protocol === 'https:') return undefined;
  if (!TYPES[type].isNative) return `must be https for ${article(type)} application`;
  const isOwn = url.protocol === 'http:' ? LOOPBACKS.has(url.hostname) : url.protocol.includes('.');
  return isOwn
    ? undefined
    : 'must be https, http to a loopback host, or of a scheme named after a domain, as in com.example.app:/callback';
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
