import { createPublicKey, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { Logger } from '@nestjs/common';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { compactJws } from '#platform/crypto/compact-jws.js';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';
import type { Signer } from '#platform/crypto/signer.js';
import type { KmsKeys } from '#platform/kms/kms-keys.js';
import {
  currentKey,
  recordKey,
  resealKey,
  supersedeKey,
  type KeyKind,
} from './token-signing-keys.repository.js';
import {
  keyOfPem,
  keyOfSigner,
  publishedKey,
  type SigningJwk,
  type TokenKey,
} from './token-key.js';

/** A JWK Set (RFC 7517 §5) of public or of private keys. */
export interface SigningJwks {
  readonly keys: SigningJwk[];
}

const KINDS = {
  ec: { alg: 'ES256', variable: 'SVC_OIDC_SIGNING_KEY' },
  rsa: { alg: 'RS256', variable: 'SVC_OIDC_RSA_SIGNING_KEY' },
} as const satisfies Record<KeyKind, object>;

const generate = promisify(generateKeyPair);
const logger = new Logger('token-signing');

/** A signer with the id (`kid`) of its key. */
interface KeyedSigner {
  readonly signer: Signer;
  readonly kid: string;
}

/** The sources of the keys: the configuration, the database and KMS. */
interface KeySources {
  readonly config: Pick<Config, 'oidc' | 'secrets'>;
  readonly dataSource: DataSource;
  readonly kmsKeys: KmsKeys;
}

/**
 * The keys that sign tokens, loaded once at start-up. For each kind of key, the keys in KMS come
 * first, then the configured PEM keys, then the key in the database. The first key signs. The
 * others are only published, so that a key can be replaced while its tokens are still valid.
 * Without a configured key, the first start generates a key and stores it encrypted, so that
 * replicas and restarts use the same key.
 */
export class TokenSigningKeys {
  readonly #signers: Readonly<Record<'ES256' | 'RS256', KeyedSigner>>;

  /** @param keys all keys; of each kind, the key that signs comes first */
  private constructor(readonly keys: readonly TokenKey[]) {
    this.#signers = { ES256: signerOf(keys, 'ES256'), RS256: signerOf(keys, 'RS256') };
  }

  /**
   * Loads the keys at start-up. If no key of a kind is configured, a warning is logged, and the
   * stored key is used. If none is stored either, a key is generated.
   *
   * @throws ConfigProblems if neither root secret decrypts a stored key that must sign
   */
  static async open(
    config: KeySources['config'],
    dataSource: DataSource,
    kmsKeys: KmsKeys,
  ): Promise<TokenSigningKeys> {
    const sources = { config, dataSource, kmsKeys };
    const keys = new Map<string, TokenKey>();
    for (const kind of ['ec', 'rsa'] as const) {
      for (const key of await keysOf(kind, sources)) {
        // A file often contains the public part of a key as well as the private part, so one key
        // may occur twice.
        if (!keys.has(key.jwk.kid)) keys.set(key.jwk.kid, key);
      }
    }
    return new TokenSigningKeys([...keys.values()]);
  }

  /**
   * Returns the private keys that this process has. A key in a key service (KMS) is not among them,
   * because its private part never leaves the service.
   */
  privateJwks(): SigningJwks {
    return {
      keys: this.keys.map(({ privateJwk }) => privateJwk).filter((jwk) => jwk !== undefined),
    };
  }

  /**
   * Signs the claims of a JWT by RS256 (RFC 7515 §5.1), because some verifiers support no other
   * algorithm.
   *
   * @throws DomainError `kms_unavailable`
   */
  signRs256(claims: object): Promise<string> {
    return this.sign('RS256', claims);
  }

  /**
   * Signs the claims of a JWT with the key that signs ID tokens by the same algorithm.
   *
   * @param typ the type of the token in its header
   * @throws DomainError `kms_unavailable`
   */
  sign(algorithm: 'ES256' | 'RS256', claims: object, typ?: string): Promise<string> {
    const { signer, kid } = this.#signers[algorithm];
    return compactJws(signer, kid, claims, typ);
  }

  /** Returns the public parts of all keys, which verifiers need. */
  publicJwks(): SigningJwks {
    return { keys: this.keys.map(({ jwk }) => jwk) };
  }
}

/** Returns the keys of a kind, the one that signs first. */
async function keysOf(kind: KeyKind, sources: KeySources): Promise<TokenKey[]> {
  const { config, kmsKeys } = sources;
  const { alg, variable } = KINDS[kind];
  const inKms = config.oidc.signingKmsKeyIds[kind].map((id) => kmsKeys.signer(id, alg));
  const blocks = config.oidc.signingKeys[kind] ?? [];
  const configured = [
    ...(await Promise.all(inKms.map(keyOfSigner))),
    ...(await Promise.all(blocks.map((block) => keyOfPem(alg, block)))),
  ];
  if (configured.length > 0) return [...configured, ...(await supersededKey(kind, sources))];
  logger.warn(`${variable}: is not set; tokens are signed by a key kept in the database`);
  return [await keyOfPem(alg, await storedKey(kind, sources))];
}

/**
 * Returns the stored key as PEM. A missing key is generated. If only the previous root secret
 * decrypts the key, it is encrypted again under the present one.
 */
async function storedKey(kind: KeyKind, sources: KeySources): Promise<string> {
  const { config } = sources;
  const { manager } = sources.dataSource;
  const sealed =
    (await currentKey(manager, kind)) ??
    (await recordKey(
      manager,
      kind,
      await sealSecret(config.secrets, purposeOf(kind), await newKey(kind)),
    ));
  const pem = await opened(kind, sealed, sources);
  if (pem === undefined) {
    throw new ConfigProblems([
      'SVC_JWT_SECRET: does not open the token-signing keys of this database; set the secret that sealed them as SVC_JWT_SECRET_PREVIOUS or SVC_JWT_HMAC_KMS_KEY_ID_PREVIOUS',
    ]);
  }
  return pem;
}

/**
 * Returns the public part of the stored key that a configured key has replaced, for a day after the
 * replacement. If the root secret does not decrypt the stored key, the result is empty. The start
 * does not fail then, because the stored key signs nothing any more.
 */
async function supersededKey(kind: KeyKind, sources: KeySources): Promise<TokenKey[]> {
  const { manager } = sources.dataSource;
  const sealed = await supersedeKey(manager, kind);
  if (sealed === undefined) return [];
  const pem = await opened(kind, sealed, sources);
  if (pem !== undefined) return [await publishedKey(KINDS[kind].alg, createPublicKey(pem))];
  logger.warn('the root secret does not open the former token-signing key of this database');
  return [];
}

/**
 * Decrypts a key; undefined if no root secret decrypts it. If only the previous root secret does,
 * the key is encrypted again under the present one.
 */
async function opened(
  kind: KeyKind,
  sealed: string,
  { config: { secrets }, dataSource: { manager } }: KeySources,
): Promise<string | undefined> {
  const secret = await openSecret(secrets, purposeOf(kind), sealed);
  if (secret?.isOutdated === true) {
    const again = await sealSecret(secrets, purposeOf(kind), secret.text);
    await resealKey(manager, kind, sealed, again);
  }
  return secret?.text;
}

/**
 * Returns the purpose for a kind of signing key. The key that encrypts the stored signing key is
 * derived from it.
 */
export function purposeOf(kind: KeyKind): string {
  return `token signing key ${kind}`;
}

async function newKey(kind: KeyKind): Promise<string> {
  const { privateKey } =
    kind === 'ec'
      ? await generate('ec', { namedCurve: 'P-256' })
      : await generate('rsa', { modulusLength: 3072 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/**
 * Returns the first key that signs by an algorithm.
 *
 * @throws Error if there is none
 */
function signerOf(keys: readonly TokenKey[], algorithm: string): KeyedSigner {
  const key = keys.find(({ jwk, signer }) => jwk.alg === algorithm && signer !== undefined);
  if (key?.signer === undefined) throw new Error(`there is no key that signs ${algorithm}`);
  return { signer: key.signer, kid: key.jwk.kid };
}
