import type { webcrypto } from 'node:crypto';
import { now, randomId } from '../program/clock.js';
import { CliFailure } from '../program/failure.js';
import type { PrivateFolder } from '../files/private-folder.js';

const NAME = 'dpop-key.json';
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;

/**
 * The ES256 key of this machine, to which the server binds tokens (RFC 9449), so that a stolen
 * token is useless without it. It never leaves the machine.
 */
export class DpopKey {
  private constructor(
    private readonly privateKey: webcrypto.CryptoKey,
    private readonly jwk: webcrypto.JsonWebKey,
  ) {}

  /** Reads the key in the folder of a server. The first use creates one. */
  static async of(folder: PrivateFolder): Promise<DpopKey> {
    const stored = folder.readJson(NAME);
    if (stored) return DpopKey.#read(stored, folder.file(NAME));
    return folder.withLock('dpop-key', async () => {
      const made = folder.readJson(NAME);
      if (made) return DpopKey.#read(made, folder.file(NAME));
      const pair = await crypto.subtle.generateKey(ALGORITHM, true, ['sign']);
      const jwk = await crypto.subtle.exportKey('jwk', pair.privateKey);
      folder.writeJson(NAME, jwk);
      return DpopKey.#read(jwk, folder.file(NAME));
    });
  }

  static async #read(jwk: webcrypto.JsonWebKey, path: string): Promise<DpopKey> {
    try {
      const key = await crypto.subtle.importKey('jwk', jwk, ALGORITHM, false, ['sign']);
      const { crv, kty, x, y } = jwk;
      return new DpopKey(key, { crv, kty, x, y } as webcrypto.JsonWebKey);
    } catch (cause) {
      const whatToDo = `Remove it (rm '${path}') and run: svc login`;
      throw new CliFailure(`${path} is damaged.`, whatToDo, 1, { cause });
    }
  }

  /**
   * Returns the thumbprint of the key (RFC 7638), by which a login names the key to the server: a
   * SHA-256 in base64url.
   */
  thumbprint(): Promise<string> {
    const { crv, kty, x, y } = this.jwk;
    return sha256(JSON.stringify({ crv, kty, x, y }));
  }

  /**
   * Signs a DPoP proof for one request, by which the server sees that the sender has the key. The
   * proof also names the token, if the request has one.
   */
  async proof(
    method: string,
    url: string,
    { token, nonce }: { readonly token?: string | undefined; readonly nonce?: string | undefined },
  ): Promise<string> {
    const { origin, pathname } = new URL(url);
    const header = { typ: 'dpop+jwt', alg: 'ES256', jwk: this.jwk };
    const payload = {
      jti: randomId(),
      htm: method,
      htu: `${origin}${pathname}`,
      iat: Math.floor(now() / 1000),
      ...(token === undefined ? {} : { ath: await sha256(token) }),
      ...(nonce === undefined ? {} : { nonce }),
    };
    const input = `${encode(JSON.stringify(header))}.${encode(JSON.stringify(payload))}`;
    const algorithm = { name: 'ECDSA', hash: 'SHA-256' };
    const signature = await crypto.subtle.sign(algorithm, this.privateKey, Buffer.from(input));
    return `${input}.${Buffer.from(signature).toString('base64url')}`;
  }
}

const encode = (text: string) => Buffer.from(text).toString('base64url');

/** Returns the SHA-256 of a text in base64url. */
export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', Buffer.from(text));
  return Buffer.from(digest).toString('base64url');
}
