import { fragment, sql, type SqlFragment } from '#platform/database/statements/sql.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';

/**
 * A document key, which encrypts the private keys of token issuers. KMS has encrypted (wrapped) the
 * document key itself.
 */
export interface WrappedDocumentKey {
  readonly id: string;
  /**
   * The id of the KMS key that encrypted (wrapped) the document key, as SVC_DOCUMENT_KEY_KMS_KEY_ID
   * named it.
   */
  readonly kmsKeyId: string;
  readonly wrapped: Buffer;
}

/** An encrypted private key of an issuer, and the id of the document key that decrypts it. */
export interface SealedIssuerKey {
  readonly orgId: string;
  readonly label: string;
  readonly kid: string;
  readonly sealed: Buffer;
  readonly documentKeyId: string;
}

/** Returns true if any organization has an issuer of its own, so that a document key is needed. */
export async function hasIssuers(tx: EntityManager): Promise<boolean> {
  const [row] = await sql<{ label: string }>(tx)`
    SELECT label FROM organization_issuers WHERE released_at IS NULL AND org_id IS NOT NULL LIMIT 1`;
  return row !== undefined;
}

/** Lists the document keys that decrypt the stored private keys of the organizations' issuers. */
export function documentKeysInUse(tx: EntityManager): Promise<WrappedDocumentKey[]> {
  return sql<WrappedDocumentKey>(tx)`
    SELECT d.id, d.kms_key_id AS "kmsKeyId", d.wrapped FROM document_keys d
    WHERE EXISTS (SELECT FROM organization_issuer_keys y WHERE y.document_key_id = d.id)`;
}

/** Finds the document key that a KMS key has encrypted (wrapped). */
export function findDocumentKey(
  tx: EntityManager,
  kmsKeyId: string,
): Promise<WrappedDocumentKey | undefined> {
  return documentKeyWhere(tx, fragment`kms_key_id = ${kmsKeyId}`);
}

/** Reads a document key, which encrypts the private keys of token issuers, by its id. */
export function readDocumentKey(
  tx: EntityManager,
  id: string,
): Promise<WrappedDocumentKey | undefined> {
  return documentKeyWhere(tx, fragment`id = ${id}`);
}

async function documentKeyWhere(
  tx: EntityManager,
  condition: SqlFragment,
): Promise<WrappedDocumentKey | undefined> {
  const [row] = await sql<WrappedDocumentKey>(tx)`
    SELECT id, kms_key_id AS "kmsKeyId", wrapped FROM document_keys WHERE ${condition}`;
  return row;
}

/**
 * Stores a document key, unless another replica has stored one for the same KMS key. Returns the
 * stored document key.
 */
export async function recordDocumentKey(
  tx: EntityManager,
  key: WrappedDocumentKey,
): Promise<WrappedDocumentKey> {
  const [row] = await sql<WrappedDocumentKey>(tx)`
    INSERT INTO document_keys (id, kms_key_id, wrapped)
    VALUES (${key.id}, ${key.kmsKeyId}, ${key.wrapped}::bytea)
    ON CONFLICT (kms_key_id) DO UPDATE SET kms_key_id = EXCLUDED.kms_key_id
    RETURNING id, kms_key_id AS "kmsKeyId", wrapped`;
  if (!row) throw new Error('INSERT returned no row');
  return row;
}

/** Lists the private keys that are encrypted under another document key than the given one. */
export function sealedByOthers(
  tx: EntityManager,
  documentKeyId: string,
): Promise<SealedIssuerKey[]> {
  return sql<SealedIssuerKey>(tx)`
    SELECT org_id AS "orgId", label, kid, sealed, document_key_id AS "documentKeyId"
    FROM organization_issuer_keys WHERE document_key_id <> ${documentKeyId}`;
}

/** Replaces the ciphertext of a private key, unless another replica has already replaced it. */
export async function resealIssuerKey(
  tx: EntityManager,
  { kid, documentKeyId }: SealedIssuerKey,
  to: { readonly sealed: Buffer; readonly documentKeyId: string },
): Promise<void> {
  await sql(tx)`
    UPDATE organization_issuer_keys
    SET sealed = ${to.sealed}::bytea, document_key_id = ${to.documentKeyId}
    WHERE kid = ${kid} AND document_key_id = ${documentKeyId}`;
}

/**
 * Deletes document keys that no stored private key needs, and whose KMS key is no longer in the
 * configuration.
 */
export async function deleteUnusedDocumentKeys(
  tx: EntityManager,
  kmsKeyIds: readonly string[],
): Promise<void> {
  await sql(tx)`
    DELETE FROM document_keys d
    WHERE d.kms_key_id <> ALL (${kmsKeyIds}::text[])
      AND NOT EXISTS (SELECT FROM organization_issuer_keys y WHERE y.document_key_id = d.id)`;
}
