import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from 'jose';

/** The algorithms that a proof may be signed with. */
export const DPOP_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256'] as const;

/** Seconds that the clock of a client may be behind ours, or ahead. */
export const DPOP_WINDOW = 300;

/** What a proof has to be about. */
export interface ProvenRequest {
  readonly method: string;
  /** The addresses the request may go by, without query or fragment; never one that its client chose. */
  readonly addresses: readonly string[];
  /** The access token that the proof comes with. */
  readonly token: string;
  /** The thumbprint of the key that the token is bound to (RFC 7638). */
  readonly jkt: string;
  /** Seconds of the epoch. */
  readonly now: number;
}

/** A proof that holds, if it was not used before. */
export interface DpopProof {
  readonly jti: string;
  /** When it was made, seconds of the epoch. */
  readonly iat: number;
}

/**
 * Checks a DPoP proof for a request to a protected resource (RFC 9449 §4.3), but for its replay.
 *
 * @returns the proof, or in words what is wrong with it
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
    return 'The DPoP proof was not made just now.';
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

/** What a proof says, and the thumbprint of the public key it carries and is signed by; undefined when it is no such thing. */
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
    return undefined; // whatever it is, it is of the proof: nothing else is looked at here
  }
}

function isFor(htu: unknown, addresses: readonly string[]): boolean {
  const address = typeof htu === 'string' ? URL.parse(htu) : null;
  if (!address) return false;
  address.search = '';
  address.hash = '';
  return addresses.some((own) => new URL(own).href === address.href);
}
