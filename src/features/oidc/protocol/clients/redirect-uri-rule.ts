/** The host names of the local machine (RFC 8252 §7.3). */
const LOOPBACKS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** The facts about a client that decide which redirect URIs are allowed. */
export interface ClientKindOfAddress {
  readonly isNative: boolean;
  /**
   * True for a client of the FAPI profile, which allows http only to native clients (FAPI 2.0
   * Security Profile §5.3.2.2).
   */
  readonly isFapi: boolean;
}

/**
 * Finds the fault of a URL that a client registers. The rules are strict, because users see such
 * URLs, and because they are compared character by character.
 *
 * @returns undefined for a URL without a fault
 */
export function addressProblem(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (!url || !/^[!-~]+$/.test(uri)) return 'must be whole URLs, percent-encoded';
  if (/[*\\]/.test(uri)) return 'is compared to the letter and takes no wildcard';
  if (url.username !== '' || url.password !== '' || hasUserInformation(uri)) {
    return 'must not name a user';
  }
  return undefined;
}

/**
 * Finds the fault of a URI to which users are redirected after a login or a logout (RFC 8252 §7,
 * RFC 9700 §2.1). Codes are sent to it, so http is only for a loopback host. Another scheme must be
 * named after a domain, such as `com.example.app` (RFC 8252 §7.1).
 *
 * @returns undefined for a URI without a fault
 */
export function redirectUriProblem(uri: string, kind: ClientKindOfAddress): string | undefined {
  const problem = addressProblem(uri);
  if (problem !== undefined) return problem;
  if (uri.includes('#')) return 'must not have a fragment';
  const { protocol, hostname } = new URL(uri);
  if (protocol === 'https:') return undefined;
  if (kind.isFapi && !kind.isNative) return 'must be https in the FAPI profile';
  if (protocol === 'http:' && LOOPBACKS.has(hostname)) return undefined;
  if (!kind.isNative) return 'must be https, or http to a loopback host';
  return protocol !== 'http:' && protocol.includes('.')
    ? undefined
    : 'must be https, http to a loopback host, or of a scheme named after a domain, as in com.example.app:/callback';
}

/**
 * Returns true if a URL has user information (RFC 3986 §3.2.1). An empty user name counts
 * (`https://@example.com`), although a parsed URL does not show it.
 */
function hasUserInformation(uri: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\/[^/?#]*@/i.test(uri);
}
