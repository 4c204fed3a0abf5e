import { sha256 } from './tree-hash.js';

const ENTRY_BYTES = 57;

/**
 * The meanings of the first byte of an entry: 0 is a checkpoint, and the others are classes of
 * audit events.
 */
const CLASSES = ['checkpoint', 'auth', 'oauth', 'admin'] as const;

/** The milliseconds from 1970 to 2000. The times in entries count from the year 2000. */
const YEAR_2000 = 946_684_800_000;

/**
 * The facts in an entry. An entry is the 57 bytes of which a leaf of the Merkle tree is the hash.
 */
export interface EntryFacts {
  readonly class: (typeof CLASSES)[number] | undefined;
  /** The id of the event; for a checkpoint, the id of its tree. */
  readonly id: string;
  /** The time of the event in milliseconds since 1970. It has no meaning for a checkpoint. */
  readonly at: number;
}

/** Reads the entry of a leaf from base64; undefined if it has another length than 57 bytes. */
export function entryOf(text: string): Buffer | undefined {
  const entry = Buffer.from(text, 'base64');
  return entry.length === ENTRY_BYTES ? entry : undefined;
}

/** Returns the facts in an entry of 57 bytes. */
export function factsOf(entry: Buffer): EntryFacts {
  const hex = entry.toString('hex', 1, 17);
  return {
    class: CLASSES[entry[0] ?? 0],
    id: hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    at: Number(entry.readBigInt64BE(17) / 1000n) + YEAR_2000,
  };
}

const BEGIN = /^\{"id":"([0-9a-f-]{36})","type":"[a-z_\d]*","class":"([a-z]+)"/;
const TIME = '"created_at_utc":"';

/**
 * Computes the entry that an exported row must have, from the bytes of the row; undefined for bytes
 * of another form.
 */
export function entryOfRow(row: Buffer): Buffer | undefined {
  const [, id, name] = BEGIN.exec(row.toString('latin1', 0, 200)) ?? [];
  const kind = CLASSES.findIndex((known) => known === name);
  const at = row.lastIndexOf(TIME);
  const time = microseconds(row.toString('latin1', at + TIME.length, at + TIME.length + 26));
  if (id === undefined || kind < 1 || at < 0 || time === undefined) return undefined;
  return written(kind, id, time, sha256(row));
}

/** Computes the entry of a checkpoint that is a leaf of another tree. */
export function entryOfNote(tree: string, size: number, note: string): Buffer {
  return written(0, tree, BigInt(size), sha256(Buffer.from(note)));
}

function written(kind: number, id: string, number: bigint, digest: Buffer): Buffer {
  const entry = Buffer.alloc(ENTRY_BYTES);
  entry[0] = kind;
  entry.write(id.replaceAll('-', ''), 1, 'hex');
  entry.writeBigInt64BE(number, 17);
  digest.copy(entry, 25);
  return entry;
}

/** Reads a time of PostgreSQL, up to the closing quote, as microseconds since 2000. */
function microseconds(text: string): bigint | undefined {
  const [, seconds = '', fraction = ''] =
    /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:"|$)/.exec(text) ?? [];
  const at = Date.parse(`${seconds}Z`);
  if (Number.isNaN(at)) return undefined;
  return BigInt(at - YEAR_2000) * 1000n + BigInt(fraction.padEnd(6, '0'));
}
