import type { Part, Structure } from './structure.js';

const NOTHING = Buffer.alloc(0);
const DEEPEST = 24;

/**
 * Returns a structure that divides a text into the matches of a pattern. The pattern must be
 * global, and its matches must cover every text.
 */
export function wordsBy(pattern: RegExp): Structure {
  return {
    read: (bytes) =>
      (bytes.toString('latin1').match(pattern) ?? []).map((word) => ({
        head: NOTHING,
        content: Buffer.from(word, 'latin1'),
      })),
    write: (parts) => Buffer.concat(parts.flatMap(flat)),
  };
}

function flat({ head, content }: Part): Buffer[] {
  return Buffer.isBuffer(content) ? [head, content] : [head, ...content.flatMap(flat)];
}

/** The tags, lengths and values of DER (X.690 §8.1). The head of a part is its tag. */
export const DER: Structure = {
  read: (bytes) => readDer(bytes, 0) ?? [leaf(bytes)],
  write: (parts) => Buffer.concat(parts.map(writeDer)),
};

function readDer(bytes: Buffer, depth: number): Part[] | undefined {
  const parts: Part[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = bytes[at] ?? 0;
    const first = bytes[at + 1] ?? 0xff;
    const width = first < 0x80 ? 0 : first & 0x7f;
    if (width > 4 || at + 2 + width > bytes.length) return undefined;
    const length = width === 0 ? first : bytes.readUIntBE(at + 2, width);
    const start = at + 2 + width;
    if (start + length > bytes.length) return undefined;
    const content = bytes.subarray(start, start + length);
    // A constructed value (bit 0x20) contains DER, and an OCTET STRING (tag 4) often does.
    const mayNest = depth < DEEPEST && ((tag & 0x20) !== 0 || tag === 0x04);
    const inner = mayNest && content.length > 0 ? readDer(content, depth + 1) : undefined;
    parts.push({ head: bytes.subarray(at, at + 1), content: inner ?? content });
    at = start + length;
  }
  return parts;
}

function writeDer({ head, content }: Part): Buffer {
  const inner = Buffer.isBuffer(content) ? content : DER.write(content);
  if (head.length === 0) return inner;
  const { length } = inner;
  if (length < 0x80) return Buffer.concat([head, Buffer.of(length), inner]);
  const width = length < 0x100 ? 1 : length < 0x1_0000 ? 2 : 3;
  const encoded = Buffer.alloc(1 + width);
  encoded[0] = 0x80 | width;
  encoded.writeUIntBE(length, 1, width);
  return Buffer.concat([head, encoded, inner]);
}

/**
 * Divides CBOR into its items (RFC 8949 §3). The head of a part is its first byte. `write` computes
 * the length in a string, an array or a map.
 */
export const CBOR: Structure = {
  read(bytes) {
    const parts: Part[] = [];
    let at = 0;
    while (at < bytes.length) {
      const item = readCbor(bytes, at, 0);
      if (!item) return [...parts, leaf(bytes.subarray(at))];
      parts.push(item.part);
      at = item.end;
    }
    return parts;
  },
  write: (parts) => Buffer.concat(parts.map(writeCbor)),
};

function readCbor(
  bytes: Buffer,
  at: number,
  depth: number,
): { part: Part; end: number } | undefined {
  const first = bytes[at];
  if (first === undefined || depth > DEEPEST) return undefined;
  const kind = first >> 5;
  const width = [1, 2, 4, 8][(first & 0x1f) - 24] ?? 0;
  if ((first & 0x1f) > 27 || at + 1 + width > bytes.length) return undefined;
  const end = at + 1 + width;
  if (kind < 2 || kind === 7)
    return { part: { head: bytes.subarray(at, end), content: NOTHING }, end };
  const count = width === 0 ? first & 0x1f : bytes.readUIntBE(at + 1, Math.min(width, 6));
  if (count > bytes.length) return undefined;
  if (kind < 4) {
    if (end + count > bytes.length) return undefined;
    const content = bytes.subarray(end, end + count);
    return { part: { head: bytes.subarray(at, at + 1), content }, end: end + count };
  }
  const members = kind === 6 ? 1 : kind === 5 ? 2 * count : count;
  const head = bytes.subarray(at, kind === 6 ? end : at + 1);
  return readMembers(bytes, end, members, { head, depth });
}

function readMembers(
  bytes: Buffer,
  start: number,
  count: number,
  { head, depth }: { readonly head: Buffer; readonly depth: number },
): { part: Part; end: number } | undefined {
  const content: Part[] = [];
  let end = start;
  for (let index = 0; index < count; index += 1) {
    const item = readCbor(bytes, end, depth + 1);
    if (!item) return undefined;
    content.push(item.part);
    end = item.end;
  }
  return { part: { head, content }, end };
}

function writeCbor({ head, content }: Part): Buffer {
  const [first] = head;
  const inner = Buffer.isBuffer(content) ? content : CBOR.write(content);
  const kind = first === undefined ? 7 : first >> 5;
  if (kind < 2 || kind > 5) return Buffer.concat([head, inner]);
  const members = Buffer.isBuffer(content) ? inner.length : content.length;
  const count = kind === 5 ? Math.floor(members / 2) : members;
  return Buffer.concat([cborHead(kind, count), inner]);
}

/** Encodes the first byte of a CBOR item and its length in the shortest form, up to 65,535. */
function cborHead(kind: number, count: number): Buffer {
  if (count < 24) return Buffer.of((kind << 5) | count);
  if (count < 0x100) return Buffer.of((kind << 5) | 24, count);
  return Buffer.of((kind << 5) | 25, (count >> 8) & 0xff, count & 0xff);
}

/**
 * Divides the SSH wire encoding into its fields (RFC 4251 §5). The encoding does not contain the
 * types of its fields, so a text lists them: `s` is a string with a length, and a digit is that
 * number of bytes.
 *
 * @param typesOf returns the types of all fields after the first one. It gets the first field,
 * which is a string.
 */
export function sshFields(typesOf: (first: string) => string): Structure {
  return {
    read(bytes) {
      const parts: Part[] = [];
      let at = 0;
      let types = 's';
      for (let index = 0; index < types.length && at < bytes.length; index += 1) {
        const part = readField(bytes.subarray(at), types[index] ?? 's');
        if (!part) break;
        parts.push(part);
        at += part.head.length === 0 ? part.content.length : 4 + part.content.length;
        if (index === 0) types += typesOf(part.content.toString('latin1'));
      }
      return at < bytes.length ? [...parts, leaf(bytes.subarray(at))] : parts;
    },
    write: (parts) => Buffer.concat(parts.map(writeField)),
  };
}

function readField(bytes: Buffer, type: string): (Part & { content: Buffer }) | undefined {
  if (type !== 's') return { head: NOTHING, content: bytes.subarray(0, Number(type)) };
  if (bytes.length < 4) return undefined;
  const length = bytes.readUInt32BE();
  if (4 + length > bytes.length) return undefined;
  return { head: Buffer.from('s'), content: bytes.subarray(4, 4 + length) };
}

function writeField({ head, content }: Part): Buffer {
  const inner = Buffer.isBuffer(content) ? content : Buffer.concat(content.map(writeField));
  if (head.length === 0) return inner;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(inner.length);
  return Buffer.concat([length, inner]);
}

/**
 * Divides a compact JWS into its segments (RFC 7515 §3.1). It decodes them, so that mutants change
 * the JSON inside.
 */
export const JWS: Structure = {
  read: (bytes) =>
    bytes
      .toString('latin1')
      .split('.')
      .map((segment) => leaf(Buffer.from(segment, 'base64url'))),
  write: (parts) =>
    Buffer.from(parts.map((part) => Buffer.concat(flat(part)).toString('base64url')).join('.')),
};

function leaf(content: Buffer): Part {
  return { head: NOTHING, content };
}
