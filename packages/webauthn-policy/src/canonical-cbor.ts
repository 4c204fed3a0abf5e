import { Encoder, Tag } from 'cbor-x';
import { Refusal } from './refusal.js';

const codec = new Encoder({
  mapsAsObjects: false,
  variableMapSize: true,
  useRecords: false,
  tagUint8Array: false,
});

/**
 * Parses a sequence of CBOR items in the short encodings that CTAP2 demands (CTAP §8, message
 * encoding). The order of the keys in a map is not checked, and a tag alone is no reason to refuse.
 *
 * Encoding the items again must give the same bytes. So duplicate keys of a map, indefinite and
 * oversized lengths, invalid UTF-8 and bytes outside of items are refused. Another parser, which
 * reads the same bytes later, could give such bytes another meaning.
 *
 * @returns the items, maps as `Map`
 * @throws Refusal for any other bytes
 */
export function readCanonicalCbor(bytes: Buffer): unknown[] {
  try {
    const items: unknown[] = [];
    if (bytes.length > 0) codec.decodeMultiple(bytes, (item) => void items.push(item));
    const isSame = Buffer.concat(items.map((item) => codec.encode(item))).equals(bytes);
    if (isSame && items.every(hasShortIntegers)) return items;
  } catch (cause) {
    throw new Refusal('The response contains malformed CBOR.', { cause });
  }
  throw new Refusal('The response contains CBOR that is not in its canonical form.');
}

/** The smallest integer that takes 8 bytes in its shortest encoding. */
const EIGHT_BYTES = 2n ** 32n;

/**
 * Returns true if no integer in a parsed value was encoded in 8 bytes without a need for them. The
 * library cbor-x reads such an integer as a `bigint` and writes 8 bytes again. So a map could have
 * the keys `1` and `1n`, which other parsers take for the same key.
 */
function hasShortIntegers(value: unknown): boolean {
  if (typeof value === 'bigint') return value >= EIGHT_BYTES || value < -EIGHT_BYTES;
  if (Array.isArray(value)) return value.every(hasShortIntegers);
  if (value instanceof Map) return [...value].flat().every(hasShortIntegers);
  if (value instanceof Set) return [...value].every(hasShortIntegers);
  return !(value instanceof Tag) || hasShortIntegers(value.value);
}
