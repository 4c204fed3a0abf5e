/**
 * The algorithms that can sign ID tokens. A logout token is signed by the same algorithm as the ID
 * tokens of its client.
 */
export type TokenAlgorithm = 'ES256' | 'RS256';

/** The URL to which logout tokens of a client are sent, and the algorithm that signs them. */
export interface Receiver {
  readonly uri: string;
  readonly algorithm: TokenAlgorithm;
}

/**
 * Returns the URL and algorithm for the logout tokens of a client; undefined if the client
 * registered no URL.
 */
export function receiverOf(metadata: Readonly<Record<string, unknown>>): Receiver | undefined {
  const uri = metadata['backchannel_logout_uri'];
  if (typeof uri !== 'string' || uri === '') return undefined;
  return { uri, algorithm: algorithmOf(metadata) };
}

/** Returns the algorithm that signs the ID tokens of a client (OpenID Connect Registration §2). */
function algorithmOf(metadata: Readonly<Record<string, unknown>>): TokenAlgorithm {
  const registered = metadata['id_token_signed_response_alg'];
  if (registered === 'ES256' || registered === 'RS256') return registered;
  return metadata['svc_profile'] === 'fapi2' ? 'ES256' : 'RS256';
}
