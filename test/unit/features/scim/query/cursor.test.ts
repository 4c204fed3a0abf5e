import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  readCursor,
  SEARCH_LENGTH,
  writeCursor,
} from '../../../../../src/features/scim/query/cursor.js';
import { DomainError } from '../../../../../src/platform/errors/domain-error.js';

const search = randomBytes(SEARCH_LENGTH);
const VALUES = [null, '', '=', 'a', 'null', 'é\u{1F511}', '\u0001"\\', 'x'.repeat(512)];

describe('a cursor', () => {
  it('decodes to the position that was encoded', () => {
    for (const value of VALUES) {
      const position = { id: randomUUID(), sort_value: value };
      expect(readCursor(writeCursor(position, search), search)).toEqual(position);
    }
  });

  it('stays short even for values of many bytes', () => {
    for (const unit of ['a', '"', '\u0001', 'é', '語', '\u{1F511}']) {
      const value = unit.repeat(512 / unit.length);
      const cursor = writeCursor({ id: randomUUID(), sort_value: value }, search);
      expect([unit, cursor.length <= 1406]).toEqual([unit, true]);
      expect(cursor).toMatch(/^[\w-]+$/);
    }
  });

  it('is refused when any part of it is not a position of the search', () => {
    const bytes = Buffer.from(
      writeCursor({ id: randomUUID(), sort_value: 'a' }, search),
      'base64url',
    );
    const without = bytes.subarray(0, SEARCH_LENGTH + 16);
    const utf16 = (text: string) => Buffer.concat([without, Buffer.from(text, 'utf16le')]);
    for (const wrong of [
      Buffer.alloc(0),
      bytes.subarray(1),
      without.subarray(0, -1),
      search,
      utf16('a'),
      utf16('=\u0000'),
      utf16('=\ud800'),
      utf16('=a\udc00b'),
      Buffer.concat([randomBytes(SEARCH_LENGTH), bytes.subarray(SEARCH_LENGTH)]),
    ]) {
      const cursor = wrong.toString('base64url');
      expect(() => readCursor(cursor, search), cursor).toThrow(DomainError);
    }
    expect(readCursor(bytes.toString('base64url'), search).sort_value).toBe('a');
  });
});
