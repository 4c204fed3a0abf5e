import { createHash, randomUUID } from 'node:crypto';
import {
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  SignJWT,
  type CryptoKey,
  type JWK,
  type JWTHeaderParameters,
} from 'jose';

/**
 * Claims and header parameters that replace those of a correct DPoP proof; undefined removes one.
 */
export interface ProofTampering {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Partial<JWTHeaderParameters>;
}

/** A client's DPoP key (RFC 9449). It signs correct and incorrect proofs. */
export class DpopKey {
  private constructor(
    readonly alg: string,
    readonly jwk: JWK,
    /** The thumbprint of the key (RFC 7638), which a token that is bound to the key contains. */
    readonly jkt: string,
    readonly privateKey: CryptoKey,
  ) {}

  static async generate(alg = 'ES256'): Promise<DpopKey> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    const jwk = await exportJWK(publicKey);
    return new DpopKey(alg, jwk, await calculateJwkThumbprint(jwk), privateKey);
  }

  /** Signs a proof for one request with a token, with the present time. */
  async proof(
    method: string,
    address: string,
    token: string,
    { claims, header }: ProofTampering = {},
  ): Promise<string> {
    const payload = {
      jti: randomUUID(),
      iat: Math.floor(Date.now() / 1000),
      htm: method,
      htu: address,
      ath: createHash('sha256').update(token).digest('base64url'),
      ...claims,
    };
    return new SignJWT(payload)
      .setProtectedHeader({ typ: 'dpop+jwt', alg: this.alg, jwk: this.jwk, ...header })
      .sign(this.privateKey);
  }
}
