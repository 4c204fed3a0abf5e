import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';

/** The signature algorithms that a DPoP proof may have. */
export const DPOP_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256'] as const;

/** The seconds by which the clock of a client may differ from the clock of this service. */
export const DPOP_WINDOW = 300;

/** The request for which a DPoP proof must be made. */
export interface ProvenRequest {
  readonly method: string;
  /**
   * The URLs under which the request may have reached the service, without query and fragment. They
   * come from the configuration, and never from a header of the client.
   */
  readonly addresses: readonly string[];
  /** The access token in the request, whose hash the proof must contain (`ath`). */
  readonly token: string;
  /** The thumbprint of the key to which the access token is bound (RFC 7638). */
  readonly jkt: string;
  /** The present time, in seconds since 1970. */
  readonly now: number;
}

/**
 * The facts of a DPoP proof whose signature was verified. The caller must still check that the
 * proof was not used before.
 */
export interface DpopProof {
  readonly jti: string;
  /** The time at which the client made the proof, in seconds since 1970. */
  readonly iat: number;
}

/**
 * Verifies a DPoP proof for a request to a protected resource (RFC 9449 §4.3). The caller must
 * check that the proof was not used before.
 *
 * @returns the proof, or the text of the error
 */
export async function checkDpopProof(
  proof: string,
  request: ProvenRequest,
): Promise<DpopProof | string> {
  const verified = await verify(proof, request.now);
  if (!verified) return 'The DPoP proof is malformed, or its signature does not verify.';
  const { jti, iat, htm, htu, ath } = verified.claims;
  if (typeof jti !== 'string' || jti === '') return 'The DPoP proof has no jti.';
  if (typeof iat !== 'number' || Math.abs(request.now - iat) > DPOP_WINDOW) {
    return 'The time of the DPoP proof is too far from now. Check the clock of the client.';
  }
  if (htm !== request.method) return 'The DPoP proof is for another method.';
  if (!isFor(htu, request.addresses)) return 'The DPoP proof is for another URL.';
  if (ath !== createHash('sha256').update(request.token).digest('base64url')) {
    return 'The DPoP proof is for another access token.';
  }
  if (verified.jkt !== request.jkt) {
    return 'The access token is bound to another DPoP key.';
  }
  return { jti, iat };
}

/**
 * Verifies the signature of a proof with the key that the proof contains. Returns the claims and
 * the thumbprint of the key; undefined if the proof is not valid.
 */
async function verify(proof: string, now: number) {
  try {
    const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: [...DPOP_ALGORITHMS],
      currentDate: new Date(now * 1000),
    });
    const { jwk } = protectedHeader;
    return jwk && { jkt: await calculateJwkThumbprint(jwk), claims: payload };
  } catch {
    return undefined; // Every error here means that the proof is not valid.
  }
}

function isFor(htu: unknown, addresses: readonly string[]): boolean {
  const address = typeof htu === 'string' ? URL.parse(htu) : null;
  if (!address) return false;
  address.search = '';
  address.hash = '';
  return addresses.some((own) => new URL(own).href === address.href);
}
