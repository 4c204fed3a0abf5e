import type { AuditPlace } from '#domain/audit/audit-filter.js';
import type { SealedPlace } from '#domain/audit/sealed-export/sealed-export.js';

const PLACE =
  /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/**
 * Reads a cursor of the sealed export. Its form is `EPOCH.INDEX`: the index of a leaf in the Merkle
 * tree of an epoch. Returns the position of the next leaf; undefined for any other text.
 */
export function readSealedPlace(cursor: string): SealedPlace | undefined {
  const [, epoch, index] = /^(\d{1,18})\.(\d{1,15})$/.exec(cursor) ?? [];
  return epoch === undefined ? undefined : { epoch, index: Number(index) + 1 };
}

/** Encodes a position in the audit log as an opaque cursor. */
export function writeCursor({ at, id }: AuditPlace): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

/** Reads the position in the audit log from a cursor; undefined for a text that is not a cursor. */
export function readCursor(cursor: string): AuditPlace | undefined {
  const [, at, id] = PLACE.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  return at !== undefined && isTime(at) && id !== undefined ? { at, id } : undefined;
}

/**
 * Checks that PostgreSQL accepts the time. A valid `Date` is not enough, because `Date` reads
 * February 30 as a day in March, and because PostgreSQL has no year 0.
 */
function isTime(at: string): boolean {
  const time = new Date(at);
  const toMillisecond = at.length - '000Z'.length;
  return (
    !at.startsWith('0000') &&
    !Number.isNaN(time.getTime()) &&
    time.toISOString().slice(0, toMillisecond) === at.slice(0, toMillisecond)
  );
}
