/**
 * A value in the subset of CBOR that CTAP allows. A map is a list of pairs, so that repeated keys
 * are kept.
 */
export type CborValue =
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'bytes'; readonly value: Buffer }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'array'; readonly items: readonly CborValue[] }
  | { readonly kind: 'map'; readonly pairs: readonly (readonly [CborValue, CborValue])[] }
  /** The bytes of a tag (with its `inner` value), a float, or a simple value. */
  | { readonly kind: 'other'; readonly bytes: Buffer; readonly inner?: CborValue };

/** The error for bytes that are no well-formed CBOR in the shortest form. */
export class StrictCborFault extends Error {
  override readonly name = 'StrictCborFault';
}

/**
 * Reads a sequence of CBOR items (RFC 8949 §3) with definite lengths in their shortest form. It
 * shares no code with the parser of the service, which it checks.
 */
export function readStrictCbor(bytes: Buffer): CborValue[] {
  const reader = new Reader(bytes);
  const items: CborValue[] = [];
  while (reader.at < bytes.length) items.push(reader.item());
  return items;
}

class Reader {
  at = 0;

  constructor(private readonly bytes: Buffer) {}

  item(): CborValue {
    const start = this.at;
    const first = this.#take(1)[0] ?? 0;
    const kind = first >> 5;
    const info = first & 0x1f;
    if (kind === 7) {
      this.#take([1, 2, 4, 8][info - 24] ?? 0);
      return { kind: 'other', bytes: this.bytes.subarray(start, this.at) };
    }
    const count = this.#count(info);
    if (kind === 0) return { kind: 'integer', value: count };
    if (kind === 1) return { kind: 'integer', value: -1n - count };
    if (kind === 2) return { kind: 'bytes', value: this.#take(Number(count)) };
    if (kind === 3) return { kind: 'text', value: this.#text(Number(count)) };
    if (kind === 4) return { kind: 'array', items: this.#items(Number(count)) };
    if (kind === 5) return { kind: 'map', pairs: this.#pairs(Number(count)) };
    return { kind: 'other', bytes: this.bytes.subarray(start, this.at), inner: this.item() };
  }

  #items(count: number): CborValue[] {
    const items: CborValue[] = [];
    while (items.length < count) items.push(this.item());
    return items;
  }

  #pairs(count: number): (readonly [CborValue, CborValue])[] {
    const pairs: (readonly [CborValue, CborValue])[] = [];
    while (pairs.length < count) pairs.push([this.item(), this.item()]);
    return pairs;
  }

  #text(length: number): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.#take(length));
    } catch (cause) {
      throw new StrictCborFault('the text is not UTF-8', { cause });
    }
  }

  #count(info: number): bigint {
    if (info < 24) return BigInt(info);
    const width = [1, 2, 4, 8][info - 24];
    if (width === undefined) throw new StrictCborFault('an indefinite or reserved length');
    const value = this.#take(width).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
    const least = [24n, 0x100n, 0x1_0000n, 0x1_0000_0000n][info - 24] ?? 0n;
    if (value < least) throw new StrictCborFault('a length that is not in its shortest form');
    return value;
  }

  #take(length: number): Buffer {
    const end = this.at + length;
    if (!(end <= this.bytes.length)) throw new StrictCborFault('it ends in the middle of an item');
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}
