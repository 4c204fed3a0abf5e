import { DomainError } from '#platform/errors/domain-error.js';
import { isStorable } from '../language/scim-language.js';

/**
 * The position at which a page of a search ends: that of its last resource in the order of the
 * search.
 */
export interface Position {
  /** The value of the sort attribute, as text; null if the resource has no value. */
  readonly sort_value: string | null;
  readonly id: string;
}

/** The number of bytes in a cursor that identify the search. */
export const SEARCH_LENGTH = 12;
/** The number of bytes of a resource id in a cursor. */
const ID_LENGTH = 16;
/**
 * The character before the value in a cursor. With it, a cursor with an empty value differs from a
 * cursor without a value.
 */
const VALUE = '=';

/**
 * Encodes a position as a cursor, by which a client gets the next page (RFC 9865 §2). It contains
 * only values that the client has seen.
 *
 *     cursor = base64url( search (12 bytes) · id (16 bytes) · [ '=' · value ] in UTF-16 )
 *
 * A cursor has to fit into the request line. A sort value has at most 512 units of UTF-16, so that
 * a cursor has at most 1406 characters.
 *
 * @param search identifies the search, {@link SEARCH_LENGTH} bytes
 */
export function writeCursor({ sort_value: value, id }: Position, search: Buffer): string {
  const bytes = [
    search,
    Buffer.from(id.replaceAll('-', ''), 'hex'),
    Buffer.from(value === null ? '' : VALUE + value, 'utf16le'),
  ];
  return Buffer.concat(bytes).toString('base64url');
}

/**
 * Decodes a cursor.
 * @throws DomainError invalid_cursor for a text that is not a cursor of the search (RFC 9865 §2.1)
 */
export function readCursor(cursor: string, search: Buffer): Position {
  const bytes = Buffer.from(cursor, 'base64url');
  const id = bytes.subarray(SEARCH_LENGTH, SEARCH_LENGTH + ID_LENGTH);
  const value = bytes.subarray(SEARCH_LENGTH + ID_LENGTH).toString('utf16le');
  const isOfSearch = bytes.subarray(0, SEARCH_LENGTH).equals(search);
  const isWhole = id.length === ID_LENGTH && (value === '' || value.startsWith(VALUE));
  if (!isOfSearch || !isWhole || !isStorable(value)) {
    throw new DomainError('invalid_cursor', 'The cursor does not belong to this search.');
  }
  return { id: uuidOf(id), sort_value: value === '' ? null : value.slice(VALUE.length) };
}

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
