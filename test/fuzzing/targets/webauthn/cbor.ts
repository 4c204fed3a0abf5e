import { isDeepStrictEqual } from 'node:util';
import { readCanonicalCbor, Refusal } from '@svc/webauthn-policy';
import { CBOR } from '../../engine/structures.js';
import { attempt, rule, type FuzzTarget } from '../../engine/target.js';
import { readStrictCbor, type CborValue } from '../../readers/strict-cbor.js';
import { FIDO_U2F, PACKED } from './ceremonies.js';

const SAMPLE = Buffer.from('a201616102820002', 'hex');

export const target: FuzzTarget = {
  parser: 'readCanonicalCbor',
  seeds: [
    PACKED.attestationObject,
    FIDO_U2F.attestationObject,
    SAMPLE,
    ...[
      'f4',
      'f6',
      'f90000',
      'fb3ff199999999999a',
      'c074323032362d30312d31355431323a30303a30305a',
    ].map((hex) => Buffer.from(hex, 'hex')),
    ...[
      'd8404100',
      'd81c8100',
      'd81d00',
      'd9dff8820000',
      '1bffffffffffffffff',
      '3903e7',
      '1b0000000000000000',
    ].map((hex) => Buffer.from(hex, 'hex')),
  ],
  dictionary: [
    'fmt',
    'attStmt',
    'authData',
    'packed',
    Buffer.of(0xbf),
    Buffer.of(0x9f),
    Buffer.of(0xff),
    Buffer.of(0x5f),
  ],
  structure: CBOR,
  longest: 4096,
  run(input) {
    const items = attempt(
      () => readCanonicalCbor(input),
      (error) => error instanceof Refusal,
    );
    rule(isSample(readCanonicalCbor(SAMPLE)), 'an input has changed how the next one is read');
    if (!items) return false;
    const strict = readStrictCbor(input);
    rule(strict.length === items.length, 'two readers find different numbers of items');
    strict.forEach((value, index) => rule(agrees(value, items[index]), 'two readers disagree'));
    return true;
  },
};

function isSample(items: unknown[]): boolean {
  return isDeepStrictEqual(items, [
    new Map<unknown, unknown>([
      [1, 'a'],
      [2, [0, 2]],
    ]),
  ]);
}

/**
 * Returns true if a value of the strict reader equals the value that the parser of the service
 * read.
 */
function agrees(strict: CborValue, value: unknown): boolean {
  switch (strict.kind) {
    case 'integer':
      return (
        (typeof value === 'number' || typeof value === 'bigint') && BigInt(value) === strict.value
      );
    case 'bytes':
      return value instanceof Uint8Array && strict.value.equals(value);
    case 'text':
      return value === strict.value;
    case 'array':
      return (
        Array.isArray(value) &&
        value.length === strict.items.length &&
        strict.items.every((item, index) => agrees(item, value[index]))
      );
    case 'map':
      return value instanceof Map && agreesWithMap(strict.pairs, value);
    case 'other':
      break;
  }
  return true;
}

function agreesWithMap(
  pairs: readonly (readonly [CborValue, CborValue])[],
  map: ReadonlyMap<unknown, unknown>,
): boolean {
  const entries = [...map];
  return (
    entries.length === pairs.length &&
    pairs.every(([key, value], index) => {
      const [otherKey, otherValue] = entries[index] ?? [];
      return agrees(key, otherKey) && agrees(value, otherValue);
    })
  );
}
