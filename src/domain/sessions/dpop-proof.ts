import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';

/** The algorithms that a proof may be signed with. */
export const DPOP_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256'] as const;

/** Seconds by which the clock of a client may differ. */
export const DPOP_WINDOW = 300;

/** The request that a proof must match. */
export interface ProvenRequest {
  readonly method: string;
  /**
   * The addresses under which the request may have reached the service, without query and fragment.
   * A header of the client never adds one.
   */
  readonly addresses: readonly string[];
  /** The access token of the request. */
  readonly token: string;
  /** The thumbprint of the key that the token is bound to (RFC 7638). */
  readonly jkt: string;
  /** The present time, in seconds since 1970. */
  readonly now: number;
}

/** A verified proof. The caller still checks that it was not used before. */
export interface DpopProof {
  readonly jti: string;
  /** The time of the proof, in seconds since 1970. */
  readonly iat: number;
}

/**
 * Verifies a DPoP proof for a request to a protected resource (RFC 9449 §4.3), except for replay.
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
  if (!isFor(htu, request.addresses)) return 'The DPoP proof is for another address.';
  if (ath !== createHash('sha256').update(request.token).digest('base64url')) {
    return 'The DPoP proof is for another access token.';
  }
  if (verified.jkt !== request.jkt) {
    return 'The access token is bound to another DPoP key.';
  }
  return { jti, iat };
}

/**
 * Verifies the signature with the key in the proof. Returns the claims and the thumbprint of the
 * key; undefined when invalid.
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
    return undefined; // every error here is an invalid proof
  }
}

function isFor(htu: unknown, addresses: readonly string[]): boolean {
  const address = typeof htu === 'string' ? URL.parse(htu) : null;
  if (!address) return false;
  address.search = '';
  address.hash = '';
  return addresses.some((own) => new URL(own).href === address.href);
}
