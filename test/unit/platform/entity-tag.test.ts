import { expect, it } from 'vitest';
import { entityTag, namesTag } from '#platform/http/request/entity-tag.js';

it('a tag is the SHA-256 of the body in hexadecimal, as sha256sum prints it', () => {
  const abc = '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"';
  expect(entityTag('abc')).toBe(abc);
  expect(entityTag(Buffer.from('abc'))).toBe(abc);
});

it.each([
  ['"abc"', true],
  ['W/"abc"', true], // from a proxy that compressed the body
  ['"x", "abc"', true],
  ['"x",W/"abc"', true],
  ['*', true],
  [undefined, false],
  ['', false],
  ['abc', false],
  ['"ab"', false],
  ['"x", "abcd"', false],
  ['"a,"abc', false],
])('RFC 9110 §13.1.2: If-None-Match %s', (header, known) => {
  expect(namesTag(header, '"abc"')).toBe(known);
});
