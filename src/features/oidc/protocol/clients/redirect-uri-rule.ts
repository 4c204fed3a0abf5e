/** A host that only this very machine answers to (RFC 8252 §7.3). */
const LOOPBACKS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** The kind of client that an address belongs to. */
export interface ClientKindOfAddress {
  readonly isNative: boolean;
  /** Whether the FAPI profile holds for it, which allows no http but to native clients (FAPI 2.0 Security Profile §5.3.2.2). */
  readonly isFapi: boolean;
}

/**
 * Says what is wrong with an address of a client, of any purpose: it is shown to users and compared to the letter.
 *
 * @returns undefined where nothing is
 */
export function addressProblem(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (!url || !/^[!-~]+$/.test(uri)) return 'must be whole addresses, percent-encoded';
  if (/[*\\]/.test(uri)) return 'is compared to the letter and takes no wildcard';
  if (url.username !== '' || url.password !== '' || hasUserInformation(uri)) {
    return 'must not name a user';
  }
  return undefined;
}

/**
 * Says what is wrong with an address that users are sent back to, after a login or a logout (RFC 8252 §7, RFC 9700 §2.1). Codes
 * are sent there, so http is for this very machine alone, and a scheme must be named after a domain (RFC 8252 §7.1).
 *
 * @returns undefined where nothing is
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

/** An empty user name leaves nothing in a parsed address (`https://@example.com`). */
function hasUserInformation(uri: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\/[^/?#]*@/i.test(uri);
}
