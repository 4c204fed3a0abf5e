import type { AuditPlace } from '#domain/audit/audit-filter.js';

const PLACE =
  /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Writes a place in the log as an opaque cursor. */
export function writeCursor({ at, id }: AuditPlace): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

/** Reads the place from a cursor; undefined for a text that is not a cursor. */
export function readCursor(cursor: string): AuditPlace | undefined {
  const [, at, id] = PLACE.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  return at !== undefined && isTime(at) && id !== undefined ? { at, id } : undefined;
}

/**
 * Checks that PostgreSQL accepts the time. `Date` reads February 30 as March 1, and PostgreSQL has
 * no year 0.
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
