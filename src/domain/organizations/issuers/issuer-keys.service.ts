import { createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { Semaphore } from '#platform/database/tenants/semaphore.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { compactJws } from '#platform/crypto/compact-jws.js';
import { localSigner, type Signer } from '#platform/crypto/signer.js';
import type { KmsKeys } from '#platform/kms/kms-keys.js';
import { DocumentKeys, type DocumentKeyConfig } from './document-key/document-keys.js';
import { openPrivateKey, sealPrivateKey } from './document-key/sealed-key.js';
import type { NewIssuerKey } from './organization-issuers.repository.js';
import type { TokenIssuer } from './signing-key.repository.js';

const generate = promisify(generateKeyPair);

/**
 * The most keys that a process generates at once. Each generation occupies one of the few libuv
 * threads for a second, and signatures need the other threads.
 */
const GENERATIONS = 2;
/** The most milliseconds that a request waits for its turn to generate a key. */
const PATIENCE_MS = 20_000;

/** The most decrypted private keys that a process keeps in memory. */
const MOST_OPENED = 500;

/**
 * The private keys of token issuers. A process keeps decrypted keys in memory, by their ids. It
 * does not remember which key signs, because the statement that records a token decides that.
 */
export class IssuerKeys {
  readonly #opened = new Map<string, Promise<Signer>>();
  readonly #generations = new Semaphore(GENERATIONS);

  private constructor(private readonly documentKeys: DocumentKeys) {}

  /**
   * Unwraps the document keys, which encrypt the private keys.
   *
   * @throws ConfigProblems see {@link DocumentKeys.open}
   */
  static async open(
    config: DocumentKeyConfig,
    dataSource: DataSource,
    kms: KmsKeys,
  ): Promise<IssuerKeys> {
    return new IssuerKeys(await DocumentKeys.open(config, dataSource, kms));
  }

  /**
   * Refuses a change of an issuer while no document key is configured, because its private key
   * could not be stored.
   *
   * @throws DomainError issuers_not_configured
   */
  assertConfigured(): void {
    this.documentKeys.current();
  }

  /**
   * Generates an RSA-3072 key pair for an issuer, and encrypts its private key.
   *
   * @throws DomainError issuers_not_configured, unavailable
   */
  async newKey(orgId: string, label: string): Promise<NewIssuerKey> {
    const { id: documentKeyId, dataKey } = this.documentKeys.current();
    const privateKey = await this.#generate();
    const jwk = await exportJWK(createPublicKey(privateKey));
    const kid = await calculateJwkThumbprint(jwk);
    const place = { orgId, label, kid };
    const publicJwk = { ...jwk, kid, use: 'sig', alg: 'RS256' };
    return {
      ...place,
      publicJwk,
      sealed: sealPrivateKey(dataKey, place, privateKey),
      documentKeyId,
    };
  }

  /**
   * Signs the claims of a token (RS256). The statement that recorded the token has chosen the key.
   *
   * @throws DomainError issuers_not_configured, kms_unavailable
   */
  async sign(orgId: string, issuer: TokenIssuer, claims: object): Promise<string> {
    return compactJws(await this.#signerOf(orgId, issuer), issuer.kid, claims);
  }

  async #generate(): Promise<KeyObject> {
    const release = await this.#generations.take(PATIENCE_MS);
    if (release === undefined) {
      const detail = 'Many keys are generated at this moment. Try again.';
      throw new DomainError('unavailable', detail, { retryAfter: 5 });
    }
    try {
      return (await generate('rsa', { modulusLength: 3072 })).privateKey;
    } finally {
      release();
    }
  }

  async #signerOf(orgId: string, issuer: TokenIssuer): Promise<Signer> {
    const name = `${orgId} ${issuer.label} ${issuer.kid}`;
    const known = this.#opened.get(name);
    const opening = known ?? this.#open(orgId, issuer).then(localSigner);
    this.#opened.delete(name);
    // This moves the key to the end of the map, so that the least recently used key is dropped
    // first.
    this.#opened.set(name, opening);
    const [oldest] = this.#opened.keys();
    if (this.#opened.size > MOST_OPENED && oldest !== undefined) this.#opened.delete(oldest);
    if (known === undefined) opening.catch(() => this.#opened.delete(name));
    return opening;
  }

  async #open(
    orgId: string,
    { label, kid, sealed, documentKeyId }: TokenIssuer,
  ): Promise<KeyObject> {
    const dataKey = await this.documentKeys.byId(documentKeyId);
    return openPrivateKey(dataKey, { orgId, label, kid }, Buffer.from(sealed, 'base64'));
  }
}
