import { hash } from 'node:crypto';

/**
 * The length of the entry of a leaf, in bytes: kind (1), id (16), number (8) and SHA-256 (32). A
 * leaf of the Merkle tree is the hash of an entry.
 */
export const ENTRY_BYTES = 57;

/**
 * The first byte of an entry is its kind. It is 0 for a checkpoint, and for an audit event the
 * position of its class in `CLASSES`, from 1.
 */
export const CHECKPOINT_KIND = 0;
const CLASSES = ['auth', 'oauth', 'admin'] as const;

/**
 * The entry of a leaf of the Merkle tree: a kind, an id, a number and a SHA-256.
 *
 * For an audit event these are its class, its id, its time in microseconds since 2000, and the hash
 * of the text of its columns. For a checkpoint they are 0, the id and the size of its tree, and the
 * hash of its signed text.
 */
export interface LeafEntry {
  readonly kind: number;
  readonly id: string;
  readonly number: bigint;
  readonly digest: Buffer;
}

/** Returns the entry by which another tree contains a checkpoint as a leaf. */
export function checkpointEntry(tree: string, size: number, note: string): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES);
  entry.write(tree.replaceAll('-', ''), 1, 'hex');
  entry.writeBigInt64BE(BigInt(size), 17);
  hash('sha256', note, 'buffer').copy(entry, 25);
  return entry;
}

/** Reads the fields of a leaf entry from its {@link ENTRY_BYTES} bytes. */
export function readEntry(entry: Buffer): LeafEntry {
  const id = entry.toString('hex', 1, 17);
  return {
    kind: entry[0] ?? CHECKPOINT_KIND,
    id: id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    number: entry.readBigInt64BE(17),
    digest: entry.subarray(25, ENTRY_BYTES),
  };
}

/** Divides bytes into leaf entries of {@link ENTRY_BYTES} each. */
export function entriesOf(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / ENTRY_BYTES }, (_, n) =>
    bytes.subarray(n * ENTRY_BYTES, (n + 1) * ENTRY_BYTES),
  );
}

/**
 * The SQL that computes the first byte of an event's leaf entry; `e` is the event. The byte names
 * the class of the event; 0xff is a class that this version does not know.
 */
export const KIND_BY_CLASS = `CASE e.class ${CLASSES.map(
  (name, n) => `WHEN '${name}' THEN '\\x0${n + 1}'::bytea`,
).join(' ')} ELSE '\\xff'::bytea END`;
