import {
  BaseBlock,
  BaseStringBlock,
  Constructed,
  fromBER,
  ObjectIdentifier,
  Utf8String,
} from 'asn1js';
import { Certificate } from 'pkijs';
import { attributeType } from './attribute-types.js';

/**
 * The result of comparing a registered subject with that of a certificate. It is `reversed` if both
 * have the same parts, but in the opposite order.
 */
export type SubjectComparison = 'match' | 'reversed' | 'mismatch';

/**
 * One attribute of a distinguished name, in canonical form: `oid=text`. If the value is not text,
 * the form is `oid#` and the DER of the value in hexadecimal.
 */
type Attribute = string;
/**
 * The attributes of one relative distinguished name (RDN). The attributes are sorted, because
 * attributes that `+` joins have no order.
 */
type Rdn = readonly Attribute[];

/**
 * The ASN.1 tags of the text types, such as UTF8String (X.680 §8.6). The list is needed because
 * ASN.1.js treats dates as strings too.
 */
const TEXT_TAGS: ReadonlySet<number> = new Set([12, 18, 19, 20, 22, 26, 28, 30]);

/**
 * Compares the registered `tls_client_auth_subject_dn` with the subject of a certificate. An RFC
 * 4514 string lists the parts (RDNs) in the reverse of their order in the certificate (§2.1).
 * Spaces, the case of attribute names and the order around `+` do not matter.
 *
 * @param der the certificate
 * @returns `reversed` if the subjects would match with the RDNs in the other order, so that the log
 *   can explain the fault
 */
export function compareSubjectDn(registered: string, der: Uint8Array): SubjectComparison {
  const expected = parseDn(registered);
  const actual = subjectOf(der);
  if (!expected || !actual) return 'mismatch';
  if (isSame(expected, actual.toReversed())) return 'match';
  return isSame(expected, actual) ? 'reversed' : 'mismatch';
}

function isSame(one: readonly Rdn[], other: readonly Rdn[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * Returns the parts (RDNs) of a certificate's subject, in the order of the certificate.
 *
 * @returns undefined for a certificate that ASN.1.js cannot read, even if OpenSSL could
 */
function subjectOf(der: Uint8Array): Rdn[] | undefined {
  try {
    const { subject } = Certificate.fromBER(Uint8Array.from(der));
    // The library pkijs lists the attributes of all parts (RDNs) together, so the parts are read
    // from the bytes of the name.
    return membersOf(fromBER(subject.valueBeforeDecode).result).map((rdn) =>
      membersOf(rdn).map(attributeOfPair).toSorted(),
    );
  } catch {
    return undefined;
  }
}

function attributeOfPair(pair: BaseBlock): Attribute {
  const [type, value] = membersOf(pair);
  if (!(type instanceof ObjectIdentifier) || !value) throw new TypeError('no attribute');
  return attribute(type.getValue(), value);
}

function membersOf(block: BaseBlock): readonly BaseBlock[] {
  if (!(block instanceof Constructed)) throw new TypeError('neither a SEQUENCE nor a SET');
  return block.valueBlock.value;
}

function attribute(type: string, value: BaseBlock | string): Attribute {
  const text = typeof value === 'string' ? value : textOf(value);
  return text === undefined
    ? `${type}#${Buffer.from((value as BaseBlock).valueBeforeDecodeView).toString('hex')}`
    : `${type}=${text.trim().replaceAll(/\s+/g, ' ')}`;
}

/**
 * Returns the text of an attribute's value.
 * @returns undefined for a value that is not text, or is malformed
 */
function textOf(value: BaseBlock): string | undefined {
  const { tagClass, tagNumber, isConstructed } = value.idBlock;
  if (tagClass !== 1 || isConstructed || !TEXT_TAGS.has(tagNumber)) return undefined;
  if (value instanceof Utf8String) return decodeUtf8(value.valueBlock.valueHexView);
  return value instanceof BaseStringBlock ? value.getValue() : undefined;
}

/**
 * Parses an RFC 4514 string, which names the subject of a certificate. As in RFC 2253 §4, `;` also
 * separates parts (RDNs), and values may be quoted.
 *
 * @returns the RDNs in written order, or undefined for any other string
 */
export function parseDn(text: string): readonly Rdn[] | undefined {
  const rdns: Rdn[] = [];
  for (const rdn of split(text, /[,;]/)) {
    const attributes = split(rdn, /\+/).map(parseAttribute);
    if (!attributes.every((one) => one !== undefined)) return undefined;
    rdns.push(attributes.toSorted());
  }
  return rdns;
}

function parseAttribute(text: string): Attribute | undefined {
  const equals = text.indexOf('=');
  const type = attributeType(text.slice(0, Math.max(equals, 0)));
  const raw = text.slice(equals + 1).trimStart();
  const value = raw.startsWith('#') ? parseHex(raw.slice(1).trim()) : unescapeValue(raw);
  return type === undefined || value === undefined ? undefined : attribute(type, value);
}

/** Splits a text at separators that are neither escaped nor quoted. */
function split(text: string, separator: RegExp): string[] {
  const parts = [''];
  let isQuoted = false;
  for (const [token] of text.matchAll(/\\.|./gsu)) {
    if (token === '"') isQuoted = !isQuoted;
    if (!isQuoted && separator.test(token) && !token.startsWith('\\')) parts.push('');
    else parts.push((parts.pop() ?? '') + token);
  }
  return parts;
}

/**
 * Parses the hexadecimal digits that follow `#` in a value: they are the BER encoding of one value
 * (RFC 4514 §2.4). Returns undefined for any other text.
 */
function parseHex(hex: string): BaseBlock | undefined {
  if (!/^(?:[\da-f]{2})+$/i.test(hex)) return undefined;
  const ber = Uint8Array.from(Buffer.from(hex, 'hex'));
  try {
    const { offset, result } = fromBER(ber);
    return offset === ber.length ? result : undefined;
  } catch {
    return undefined; // ASN.1.js throws for a malformed time
  }
}

/**
 * Replaces the escapes and quotes of a value by the characters that they stand for.
 * @returns undefined for an invalid escape, a missing escape, or bytes that are not UTF-8
 */
function unescapeValue(raw: string): string | undefined {
  const quoted = /^"((?:[^"\\]|\\.)*)"\s*$/su.exec(raw)?.[1];
  const bytes: Buffer[] = [];
  const tokens = (quoted ?? raw).matchAll(/\\([\da-f]{2})|\\([ "#+,;<=>\\])|(.)/gisu);
  for (const [, hex, escaped, plain = ''] of tokens) {
    if (plain === '\\' || (quoted === undefined && /["<>]/.test(plain))) return undefined;
    bytes.push(hex === undefined ? Buffer.from(escaped ?? plain) : Buffer.from(hex, 'hex'));
  }
  return decodeUtf8(Buffer.concat(bytes));
}

/**
 * Decodes bytes as UTF-8.
 * @returns undefined for invalid bytes, because a decoder that replaces them by U+FFFD would make
 *   different bytes equal
 */
function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
