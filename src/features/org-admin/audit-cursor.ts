import type { AuditPlace } from '#domain/audit/audit-events.repository.js';

const PLACE =
  /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** A place in the log as a client carries it: opaque. */
export function writeCursor({ at, id }: AuditPlace): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

/** The place of a cursor; undefined for what is none of ours. */
export function readCursor(cursor: string): AuditPlace | undefined {
  const [, at, id] = PLACE.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  return at !== undefined && isTime(at) && id !== undefined ? { at, id } : undefined;
}

/** Whether a database has this time: Date reads the 30th of February as the 1st of March, and there is no year 0. */
function isTime(at: string): boolean {
  const time = new Date(at);
  const toMillisecond = at.length - '000Z'.length;
  return (
    !at.startsWith('0000') &&
    !Number.isNaN(time.getTime()) &&
    time.toISOString().slice(0, toMillisecond) === at.slice(0, toMillisecond)
  );
}
