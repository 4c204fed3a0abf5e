import { hash } from 'node:crypto';

/** The bytes of the entry of a leaf. */
export const ENTRY_BYTES = 57;

/** The kinds of leaves by the first byte of the entry: a checkpoint, or a row of a class. */
export const CHECKPOINT_KIND = 0;
const CLASSES = ['auth', 'oauth', 'admin'] as const;

/**
 * The entry of a leaf: the kind, an id, a number and the SHA-256 of a text. Of a row, these are its
 * class, its id, its time in microseconds since 2000 and the hash of the text of all its columns.
 * Of a checkpoint, they are 0, the id and the size of its tree, and the hash of its signed text.
 */
export interface LeafEntry {
  readonly kind: number;
  readonly id: string;
  readonly number: bigint;
  readonly digest: Buffer;
}

/** Returns the entry of a checkpoint in another tree. */
export function checkpointEntry(tree: string, size: number, note: string): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES);
  entry.write(tree.replaceAll('-', ''), 1, 'hex');
  entry.writeBigInt64BE(BigInt(size), 17);
  hash('sha256', note, 'buffer').copy(entry, 25);
  return entry;
}

/** Reads an entry. */
export function readEntry(entry: Buffer): LeafEntry {
  const id = entry.toString('hex', 1, 17);
  return {
    kind: entry[0] ?? CHECKPOINT_KIND,
    id: id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    number: entry.readBigInt64BE(17),
    digest: entry.subarray(25, ENTRY_BYTES),
  };
}

/** Divides the entries of several leaves. */
export function entriesOf(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / ENTRY_BYTES }, (_, n) =>
    bytes.subarray(n * ENTRY_BYTES, (n + 1) * ENTRY_BYTES),
  );
}

/** The number of a class as the first byte of an entry has it, in SQL. */
export const KIND_BY_CLASS = `CASE e.class ${CLASSES.map(
  (name, n) => `WHEN '${name}' THEN '\\x0${n + 1}'::bytea`,
).join(' ')} ELSE '\\xff'::bytea END`;
