import { DomainError } from '#platform/errors/domain-error.js';
import { isStorable } from '../schema/literal.js';

/** Where a page ended: its last resource. */
export interface Position {
  /** What it is sorted by, as text, whatever it is; null where it has no value. */
  readonly sort_value: string | null;
  readonly id: string;
}

/** How many bytes tell one search from another, and how many an id has. */
export const SEARCH_LENGTH = 12;
const ID_LENGTH = 16;
/** Before a value: nothing at all is none. */
const VALUE = '=';

/**
 * A position as the client gets it (RFC 9865 §2), which says nothing that the client was not shown.
 *
 *     cursor = base64url( search (12 bytes) · id (16 bytes) · [ '=' · value ] in UTF-16 )
 *
 * It has to fit into the head of a request: what resources are sorted by has 512 units of UTF-16 at most, so that a cursor is
 * never longer than 1406 characters, whatever the value is written with.
 *
 * @param search which search it is of, {@link SEARCH_LENGTH} bytes
 */
export function writeCursor({ sort_value: value, id }: Position, search: Buffer): string {
  const bytes = [
    search,
    Buffer.from(id.replaceAll('-', ''), 'hex'),
    Buffer.from(value === null ? '' : VALUE + value, 'utf16le'),
  ];
  return Buffer.concat(bytes).toString('base64url');
}

/** @throws DomainError invalid_cursor for what is no cursor of the search (RFC 9865 §2.1) */
export function readCursor(cursor: string, search: Buffer): Position {
  const bytes = Buffer.from(cursor, 'base64url');
  const id = bytes.subarray(SEARCH_LENGTH, SEARCH_LENGTH + ID_LENGTH);
  const value = bytes.subarray(SEARCH_LENGTH + ID_LENGTH).toString('utf16le');
  const isOfSearch = bytes.subarray(0, SEARCH_LENGTH).equals(search);
  const isWhole = id.length === ID_LENGTH && (value === '' || value.startsWith(VALUE));
  if (!isOfSearch || !isWhole || !isStorable(value)) {
    throw new DomainError('invalid_cursor', 'The cursor is not one of this search.');
  }
  return { id: uuidOf(id), sort_value: value === '' ? null : value.slice(VALUE.length) };
}

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
