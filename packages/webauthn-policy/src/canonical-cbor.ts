import { Encoder } from 'cbor-x';
import { Refusal } from './refusal.js';

const codec = new Encoder({
  mapsAsObjects: false,
  variableMapSize: true,
  useRecords: false,
  tagUint8Array: false,
});

/**
 * Parses a sequence of CBOR items, each in the only encoding that CTAP2 allows (CTAP §8, message
 * encoding).
 *
 * Encoding the items again must give the same bytes. So duplicate keys of a map, indefinite and
 * oversized lengths, invalid UTF-8 and bytes outside of items are refused. Another parser, which
 * reads the same bytes later, could read these differently.
 *
 * @returns the items, maps as `Map`
 * @throws Refusal for any other bytes
 */
export function readCanonicalCbor(bytes: Buffer): unknown[] {
  try {
    const items: unknown[] = [];
    if (bytes.length > 0) codec.decodeMultiple(bytes, (item) => void items.push(item));
    if (Buffer.concat(items.map((item) => codec.encode(item))).equals(bytes)) return items;
  } catch (cause) {
    throw new Refusal('The response contains malformed CBOR.', { cause });
  }
  throw new Refusal('The response contains CBOR that is not in its canonical form.');
}
