/** The algorithms of ID tokens, and so of logout tokens. */
export type TokenAlgorithm = 'ES256' | 'RS256';

/** The address to which a client gets logout tokens, and the algorithm that signs them. */
export interface Receiver {
  readonly uri: string;
  readonly algorithm: TokenAlgorithm;
}

/** Returns the receiver of a client; undefined for a client that registered no address. */
export function receiverOf(metadata: Readonly<Record<string, unknown>>): Receiver | undefined {
  const uri = metadata['backchannel_logout_uri'];
  if (typeof uri !== 'string' || uri === '') return undefined;
  return { uri, algorithm: algorithmOf(metadata) };
}

/** Returns the algorithm of the ID tokens of a client (OpenID Connect Registration §2). */
function algorithmOf(metadata: Readonly<Record<string, unknown>>): TokenAlgorithm {
  const registered = metadata['id_token_signed_response_alg'];
  if (registered === 'ES256' || registered === 'RS256') return registered;
  return metadata['svc_profile'] === 'fapi2' ? 'ES256' : 'RS256';
}
