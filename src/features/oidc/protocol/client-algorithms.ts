/** The algorithms that clients of the FAPI profile may sign with (FAPI 2.0 Security Profile §5.4.1). No client signs by a shared secret. */
export const FAPI_ALGORITHMS = ['PS256', 'ES256', 'EdDSA', 'Ed25519'] as const;

/** The algorithms that every other client may sign with: RS256 too, which OpenID Connect makes the default (Core §15.1). */
export const CLIENT_ALGORITHMS = [...FAPI_ALGORITHMS, 'RS256'] as const;

/** The algorithms that we sign with. */
export const OUR_ALGORITHMS = ['ES256', 'RS256'] as const;

const FAPI: ReadonlySet<unknown> = new Set(FAPI_ALGORITHMS);

/** Tells whether an algorithm is one of the FAPI profile. */
export function isFapiAlgorithm(algorithm: unknown): boolean {
  return FAPI.has(algorithm);
}
