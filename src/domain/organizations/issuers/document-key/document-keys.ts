import { newUuid } from '#platform/clock/random.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import type { DataSource, EntityManager } from '#platform/database/statements/typeorm.js';
import { DomainError } from '#platform/errors/domain-error.js';
import type { KmsKeys } from '#platform/kms/kms-keys.js';
import {
  deleteUnusedDocumentKeys,
  documentKeysInUse,
  findDocumentKey,
  hasIssuers,
  readDocumentKey,
  recordDocumentKey,
  resealIssuerKey,
  sealedByOthers,
  type WrappedDocumentKey,
} from './document-keys.repository.js';
import { openPrivateKey, sealPrivateKey } from './sealed-key.js';

const VARIABLE = 'SVC_DOCUMENT_KEY_KMS_KEY_ID';

/** A document key in plain bytes, as KMS decrypted (unwrapped) it. */
export interface DocumentKey {
  readonly id: string;
  readonly dataKey: Buffer;
}

/** The settings on which the document keys depend. */
export type DocumentKeyConfig = Pick<Config, 'documentKey' | 'relyingParty'>;

/**
 * The document keys of this deployment, which encrypt the private keys of token issuers. KMS
 * decrypts (unwraps) them at start-up. New private keys are encrypted under the document key of the
 * first configured KMS key; the other document keys only decrypt. If another replica makes a
 * document key later, this process unwraps it as soon as a row needs it.
 */
export class DocumentKeys {
  readonly #opened = new Map<string, Promise<Buffer>>();
  #current: DocumentKey | undefined;

  private constructor(
    private readonly config: DocumentKeyConfig,
    private readonly manager: EntityManager,
    private readonly kms: KmsKeys,
  ) {}

  /**
   * Unwraps the document keys that stored private keys need, and that of the first configured KMS
   * key, which encrypts new private keys. Makes this document key if there is none. Encrypts every
   * private key that another document key encrypts again under this one, and deletes document keys
   * that no private key needs and whose KMS key is not configured any more.
   *
   * @throws ConfigProblems if an organization has an issuer and no document key is configured, or
   *   if a document key cannot be unwrapped
   */
  static async open(
    config: DocumentKeyConfig,
    { manager }: DataSource,
    kms: KmsKeys,
  ): Promise<DocumentKeys> {
    const keys = new DocumentKeys(config, manager, kms);
    const [first] = config.documentKey.kmsKeyIds;
    if (first === undefined) {
      if (!(await hasIssuers(manager))) return keys;
      throw new ConfigProblems([`${VARIABLE}: is required: an organization has an issuer`]);
    }
    try {
      for (const used of await documentKeysInUse(manager)) await keys.#unwrap(used);
      await keys.#useKeyOf(first);
    } catch (error) {
      throw problemOf(error);
    }
    return keys;
  }

  /** True if a KMS key for document keys is configured, so that organizations can have issuers. */
  get isConfigured(): boolean {
    return this.#current !== undefined;
  }

  /**
   * Returns the document key that encrypts new private keys.
   *
   * @throws DomainError issuers_not_configured
   */
  current(): DocumentKey {
    if (this.#current === undefined) throw notConfigured();
    return this.#current;
  }

  /**
   * Returns a document key by its id.
   *
   * @throws DomainError issuers_not_configured, kms_unavailable
   */
  async byId(id: string): Promise<Buffer> {
    const known = this.#opened.get(id);
    if (known !== undefined) return known;
    if (!this.isConfigured) throw notConfigured();
    const key = await readDocumentKey(this.manager, id);
    if (key === undefined) throw new Error('a document key is missing');
    return this.#unwrap(key);
  }

  /**
   * Encrypts new private keys under the document key of a KMS key from now on, and encrypts the
   * stored private keys again under it.
   */
  async #useKeyOf(kmsKeyId: string): Promise<void> {
    const found = (await findDocumentKey(this.manager, kmsKeyId)) ?? (await this.#make(kmsKeyId));
    const current = { id: found.id, dataKey: await this.#unwrap(found) };
    this.#current = current;
    for (const key of await sealedByOthers(this.manager, current.id)) {
      const opened = openPrivateKey(await this.byId(key.documentKeyId), key, key.sealed);
      const sealed = sealPrivateKey(current.dataKey, key, opened);
      await resealIssuerKey(this.manager, key, { sealed, documentKeyId: current.id });
    }
    await deleteUnusedDocumentKeys(this.manager, this.config.documentKey.kmsKeyIds);
  }

  /**
   * Makes a new document key. If several replicas start at once, the first one stores its document
   * key, and the others use that one.
   */
  async #make(kmsKeyId: string): Promise<WrappedDocumentKey> {
    const { encrypted } = await this.kms.generateDataKey(kmsKeyId, this.#context());
    return recordDocumentKey(this.manager, { id: newUuid(), kmsKeyId, wrapped: encrypted });
  }

  #unwrap({ id, kmsKeyId, wrapped }: WrappedDocumentKey): Promise<Buffer> {
    const known = this.#opened.get(id);
    if (known !== undefined) return known;
    if (!this.config.documentKey.kmsKeyIds.includes(kmsKeyId)) throw notConfigured();
    const opening = this.kms.decryptDataKey(kmsKeyId, wrapped, this.#context());
    this.#opened.set(id, opening);
    // A failed attempt is forgotten, so that the next caller asks KMS again.
    opening.catch(() => this.#opened.delete(id));
    return opening;
  }

  /**
   * Returns the encryption context of KMS, which names the deployment, so that a document key of
   * one deployment cannot be unwrapped in another.
   */
  #context(): Readonly<Record<string, string>> {
    return { deployment: this.config.relyingParty.id, purpose: 'svc document encryption key' };
  }
}

function notConfigured(): DomainError {
  return new DomainError(
    'issuers_not_configured',
    'This deployment has no document encryption key. Ask its operator.',
  );
}

/**
 * Returns the error with which a start fails because of a document key. An error of the database is
 * returned unchanged.
 */
function problemOf(error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  const reason =
    error.code === 'issuers_not_configured'
      ? 'name the key of KMS that wrapped it, too'
      : reasonOf(error.cause);
  return new ConfigProblems([
    `${VARIABLE}: a document key of this database does not open: ${reason}`,
  ]);
}
