import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  sign,
  type KeyObject,
} from 'node:crypto';
import { promisify } from 'node:util';
import { Logger } from '@nestjs/common';
import { calculateJwkThumbprint, exportJWK, type JWK } from 'jose';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import { TokenSigningKeysRepository, type KeyKind } from './token-signing-keys.repository.js';

/** A key as a JWK (RFC 7517); `kid` is the thumbprint of RFC 7638. */
export type SigningJwk = JWK & { readonly kid: string; readonly alg: string };

/** A JWK Set (RFC 7517 §5). */
export interface SigningJwks {
  readonly keys: SigningJwk[];
}

const KINDS: Readonly<Record<KeyKind, { readonly alg: string; readonly variable: string }>> = {
  ec: { alg: 'ES256', variable: 'SVC_OIDC_SIGNING_KEY' },
  rsa: { alg: 'RS256', variable: 'SVC_OIDC_RSA_SIGNING_KEY' },
};

const generate = promisify(generateKeyPair);

/** Signs in a thread of libuv: an RSA signature would hold up every other request for a millisecond. */
const signInThread = promisify<string, Buffer, KeyObject, Buffer>(sign);

/** The key of RS256 signatures, imported once, with the encoded header of its tokens. */
interface Rs256Signer {
  readonly key: KeyObject;
  readonly header: string;
}

/**
 * The keys that sign tokens, loaded once at start-up. Of the configured keys, the first of each kind signs; the others are
 * published, so that a rotation overlaps. Without a configured key, the first start generates a key and stores it sealed, so that
 * replicas and restarts use the same key.
 */
export class TokenSigningKeys {
  readonly #rs256: Rs256Signer;

  /** @param keys the signing key of each kind before the other keys of the kind */
  private constructor(private readonly keys: readonly SigningJwk[]) {
    this.#rs256 = rs256Signer(keys);
  }

  /**
   * Loads the keys. Generates a key of each kind that is neither configured nor stored, and logs a warning.
   *
   * @throws ConfigProblems when neither root secret opens a stored key
   */
  static async open(
    config: Pick<Config, 'oidc' | 'secrets'>,
    dataSource: DataSource,
    repository: TokenSigningKeysRepository,
  ): Promise<TokenSigningKeys> {
    const logger = new Logger('token-signing');
    const keys = new Map<string, SigningJwk>();
    for (const kind of ['ec', 'rsa'] as const) {
      const configured = config.oidc.signingKeys[kind];
      if (configured === undefined) {
        logger.warn(
          `${KINDS[kind].variable}: is not set; tokens are signed by a key kept in the database`,
        );
      }
      const blocks = configured ?? [await storedKey(kind, config.secrets, dataSource, repository)];
      for (const block of blocks) {
        const jwk = await toJwk(kind, block);
        if (!keys.has(jwk.kid)) keys.set(jwk.kid, jwk); // a file often holds the public part beside the private one
      }
    }
    return new TokenSigningKeys([...keys.values()]);
  }

  /**
   * Returns the keys with a private part, for `oidc-provider`. The library signs with the first key that fits, and accepts an
   * `id_token_hint` of any of them.
   */
  privateJwks(): SigningJwks {
    return { keys: this.keys.filter(({ d }) => d !== undefined) };
  }

  /** Signs the claims of a JWT by RS256 (RFC 7515 §5.1), for verifiers that know no other algorithm well. */
  async signRs256(claims: object): Promise<string> {
    const { key, header } = this.#rs256;
    const signed = `${header}.${encode(claims)}`;
    const signature = await signInThread('sha256', Buffer.from(signed), key);
    return `${signed}.${signature.toString('base64url')}`;
  }

  /** Returns the public part of every key. */
  publicJwks(): SigningJwks {
    return { keys: this.keys.map(publicPart) };
  }
}

/** Returns the stored key as PEM. Generates a missing key; seals a key again that only the previous root secret opens. */
async function storedKey(
  kind: KeyKind,
  secrets: Config['secrets'],
  { manager }: DataSource,
  repository: TokenSigningKeysRepository,
): Promise<string> {
  const purpose = `token signing key ${kind}`;
  const sealed =
    (await repository.find(manager, kind)) ??
    (await repository.record(
      manager,
      kind,
      await sealSecret(secrets, purpose, await newKey(kind)),
    ));
  const opened = await openSecret(secrets, purpose, sealed);
  if (opened === undefined) {
    throw new ConfigProblems([
      'SVC_JWT_SECRET: does not open the token-signing keys of this database; set the secret that sealed them as SVC_JWT_SECRET_PREVIOUS',
    ]);
  }
  if (opened.isOutdated) {
    await repository.reseal(manager, kind, sealed, await sealSecret(secrets, purpose, opened.text));
  }
  return opened.text;
}

async function newKey(kind: KeyKind): Promise<string> {
  const { privateKey } =
    kind === 'ec'
      ? await generate('ec', { namedCurve: 'P-256' })
      : await generate('rsa', { modulusLength: 3072 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

async function toJwk(kind: KeyKind, pem: string): Promise<SigningJwk> {
  const isPrivate = pem.includes('PRIVATE KEY-----');
  const jwk = await exportJWK(isPrivate ? createPrivateKey(pem) : createPublicKey(pem));
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), use: 'sig', alg: KINDS[kind].alg };
}

/** Imports the first RSA key with a private part: the one that signs. */
function rs256Signer(keys: readonly SigningJwk[]): Rs256Signer {
  const jwk = keys.find(({ alg, d }) => alg === 'RS256' && d !== undefined);
  if (jwk === undefined) throw new Error('there is no RSA key that signs');
  const { kid, alg } = jwk;
  return {
    key: createPrivateKey({ key: jwk, format: 'jwk' }),
    header: encode({ alg, kid, typ: 'JWT' }),
  };
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}

function publicPart({ kty, crv, x, y, n, e, kid, use, alg }: SigningJwk): SigningJwk {
  const parts = { kty, crv, x, y, n, e, use };
  const present = Object.entries(parts).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(present), kid, alg };
}
