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

/** How a registered subject compares with that of a certificate. */
export type SubjectVerdict = 'match' | 'reversed' | 'mismatch';

/** One attribute, in the one spelling that is compared: `oid=text`, or `oid#` and the DER of a value that is no text. */
type Attribute = string;
/** The attributes of one RDN, sorted: `+` joins them in no order. */
type Rdn = readonly Attribute[];

/** The tags of the types that hold text (X.680 §8.6): ASN.1.js takes dates for strings as well. */
const TEXT_TAGS: ReadonlySet<number> = new Set([12, 18, 19, 20, 22, 26, 28, 30]);

/**
 * Compares the registered `tls_client_auth_subject_dn`, an RFC 4514 string, with the subject of a certificate, whose RDNs it
 * names in the reverse of their DER order (RFC 4514 §2.1). Neither spacing nor the case of attribute names counts, nor the
 * order of the values that `+` joins.
 *
 * @param der the certificate
 * @returns reversed where it would match with its RDNs the other way round: a mistake that is worth telling
 */
export function compareSubjectDn(registered: string, der: Uint8Array): SubjectVerdict {
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
 * The RDNs of a certificate's subject, in DER order.
 *
 * @returns undefined for what OpenSSL may have read and ASN.1.js does not: whose it is nobody can tell
 */
function subjectOf(der: Uint8Array): Rdn[] | undefined {
  try {
    const { subject } = Certificate.fromBER(Uint8Array.from(der));
    // pkijs flattens the sets of a name: the name's own DER still has them.
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

/** @returns undefined for a value that is no text, or broken */
function textOf(value: BaseBlock): string | undefined {
  const { tagClass, tagNumber, isConstructed } = value.idBlock;
  if (tagClass !== 1 || isConstructed || !TEXT_TAGS.has(tagNumber)) return undefined;
  if (value instanceof Utf8String) return decodeUtf8(value.valueBlock.valueHexView);
  return value instanceof BaseStringBlock ? value.getValue() : undefined;
}

/**
 * Reads an RFC 4514 string: `;` separates RDNs and quotation marks protect values too, as in RFC 2253 §4.
 *
 * @returns its RDNs in the order they are written, or undefined for what is no such string
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

/** Splits at separators that no backslash and no quotation mark protects. */
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

/** The value that `#` and hexadecimal spell: the whole BER of one (RFC 4514 §2.4). */
function parseHex(hex: string): BaseBlock | undefined {
  if (!/^(?:[\da-f]{2})+$/i.test(hex)) return undefined;
  const ber = Uint8Array.from(Buffer.from(hex, 'hex'));
  const { offset, result } = fromBER(ber);
  return offset === ber.length ? result : undefined;
}

/** @returns undefined for an escape that is none, a character that needs one, or bytes that are no UTF-8 */
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

/** @returns undefined for what is no UTF-8: put in its place, U+FFFD would make all of it equal */
function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
