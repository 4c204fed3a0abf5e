import { generateKeyPairSync } from 'node:crypto';
import {
  BitString,
  BmpString,
  IA5String,
  Integer,
  ObjectIdentifier,
  OctetString,
  PrintableString,
  Sequence,
  Set as Asn1Set,
  UTCTime,
  Utf8String,
  fromBER,
} from 'asn1js';
import {
  AlgorithmIdentifier,
  Certificate,
  PublicKeyInfo,
  RelativeDistinguishedNames,
  Time,
} from 'pkijs';
import { describe, expect, it } from 'vitest';
import {
  compareSubjectDn,
  parseDn,
} from '../../../../src/features/oidc/protocol/clients/subject-dn.js';

const OID = {
  C: '2.5.4.6',
  O: '2.5.4.10',
  OU: '2.5.4.11',
  CN: '2.5.4.3',
  UID: '0.9.2342.19200300.100.1.1',
  DC: '0.9.2342.19200300.100.1.25',
  EMAIL: '1.2.840.113549.1.9.1',
  OWN: '1.3.6.1.4.1.99999.1',
} as const;

type Value =
  string | PrintableString | IA5String | BmpString | OctetString | ObjectIdentifier | UTCTime;
/** The RDNs of a subject, in the order of their DER. Each has at least one attribute. */
type Subject = readonly (readonly (readonly [keyof typeof OID, Value])[])[];

const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Returns a UTF8String with these bytes, which are Latin-1 and so not valid UTF-8. */
function brokenUtf8(bytes: Buffer): Utf8String {
  const value = new Utf8String();
  value.valueBlock.valueHexView = bytes;
  return value;
}

/** Returns the DER of an unsigned certificate with this subject. */
function certificate(subject: Subject): Buffer {
  const name = new Sequence({
    value: subject.map(
      (rdn) =>
        new Asn1Set({
          value: rdn.map(
            ([type, value]) =>
              new Sequence({
                value: [
                  new ObjectIdentifier({ value: OID[type] }),
                  typeof value === 'string' ? new Utf8String({ value }) : value,
                ],
              }),
          ),
        }),
    ),
  });
  const algorithm = () => new AlgorithmIdentifier({ algorithmId: '1.2.840.10045.4.3.2' });
  const result = new Certificate({
    version: 2,
    serialNumber: new Integer({ value: 1 }),
    signature: algorithm(),
    signatureAlgorithm: algorithm(),
    issuer: new RelativeDistinguishedNames(),
    subject: new RelativeDistinguishedNames({ schema: fromBER(name.toBER()).result }),
    notBefore: new Time({ value: new Date(0) }),
    notAfter: new Time({ value: new Date(2.2e12) }),
    subjectPublicKeyInfo: PublicKeyInfo.fromBER(publicKey.export({ type: 'spki', format: 'der' })),
  });
  result.signatureValue = new BitString({ valueHex: new ArrayBuffer(8) });
  return Buffer.from(result.toSchema(true).toBER());
}

const octets = (text: string) => new OctetString({ valueHex: Buffer.from(text) });

const PLAIN: Subject = [
  [['C', new PrintableString({ value: 'SE' })]],
  [['O', 'Example']],
  [['CN', 'client one']],
];
const PEOPLE: Subject = [
  [['DC', new IA5String({ value: 'net' })]],
  [['DC', 'example']],
  [
    ['OU', 'Sales'],
    ['CN', 'J.  Smith'],
  ],
];
const AWKWARD: Subject = [[['O', 'Smith, Sons + Co; "Best" <1>\\2']], [['CN', '#1 client ']]];
const FOREIGN: Subject = [[['OWN', 'x']], [['CN', 'Lučić']]];

describe('a registered subject and the subject of a certificate', () => {
  it.each<readonly [string, string, Subject]>([
    ['RFC 4514 order is the reverse of DER', 'CN=client one,O=Example,C=SE', PLAIN],
    ['spaces around separators do not count', ' CN = client one , O = Example , C = SE ', PLAIN],
    ['nor do repeated spaces inside a value', 'CN=client   one,O=Example,C=SE', PLAIN],
    ['the case of attribute names does not count', 'cn=client one,o=Example,c=SE', PLAIN],
    ['types may be written as OIDs', '2.5.4.3=client one,2.5.4.10=Example,oid.2.5.4.6=SE', PLAIN],
    ['semicolons separate as well (RFC 2253 §4)', 'CN=client one;O=Example;C=SE', PLAIN],
    [
      '+ joins values, with spaces (RFC 4514 §4)',
      'OU=Sales + CN=J. Smith,DC=example,DC=net',
      PEOPLE,
    ],
    ['+ joins values, without spaces', 'OU=Sales+CN=J. Smith,DC=example,DC=net', PEOPLE],
    ['in any order', 'CN=J. Smith+OU=Sales,DC=example,DC=net', PEOPLE],
    [
      'characters escaped by a backslash',
      String.raw`CN=\#1 client\ ,O=Smith\, Sons \+ Co\; \"Best\" \<1\>\\2`,
      AWKWARD,
    ],
    [
      'characters escaped as hexadecimal',
      String.raw`CN=\231 client,O=Smith\2C Sons \2B Co\3B \22Best\22 \3C1\3E\5C2`,
      AWKWARD,
    ],
    ['a quoted value', String.raw`CN="#1 client",O="Smith, Sons + Co; \"Best\" <1>\\2"`, AWKWARD],
    [
      'UTF-8 as hexadecimal (RFC 4514 §4)',
      String.raw`CN=Lu\C4\8Di\C4\87,1.3.6.1.4.1.99999.1=x`,
      FOREIGN,
    ],
    ['UTF-8 as it is', 'CN=Lučić,1.3.6.1.4.1.99999.1=x', FOREIGN],
    ['a value as the DER of a string', 'CN=Lučić,1.3.6.1.4.1.99999.1=#0C0178', FOREIGN],
    [
      'a value that is no string, as its DER',
      'CN=a,1.3.6.1.4.1.99999.1=#04024869',
      [[['OWN', new OctetString({ valueHex: Buffer.from('Hi') })]], [['CN', 'a']]],
    ],
    ['a string of another type', 'CN=client', [[['CN', new BmpString({ value: 'client' })]]]],
    [
      'an e-mail address by the name OpenSSL gives it',
      'emailAddress=a@b.example,CN=x',
      [[['CN', 'x']], [['EMAIL', new IA5String({ value: 'a@b.example' })]]],
    ],
    [
      'long names of attributes (RFC 4519 §2)',
      'commonName=client one,organizationName=Example,COUNTRYNAME=SE',
      PLAIN,
    ],
    [
      'a # that begins a value and is escaped, which is text',
      String.raw`CN=\#04024869`,
      [[['CN', '#04024869']]],
    ],
    ['a = inside a value', 'CN=a=b', [[['CN', 'a=b']]]],
    ['a quotation mark that is escaped', String.raw`CN=a\"b\,c`, [[['CN', 'a"b,c']]]],
    ['< and > inside quotation marks', 'CN="<a>, <b>"', [[['CN', '<a>, <b>']]]],
    ['a value that is empty', 'CN=,O=Example', [[['O', 'Example']], [['CN', '']]]],
    [
      'a value of spaces alone is empty too',
      String.raw`CN=\20\ ,O=x`,
      [[['O', 'x']], [['CN', '']]],
    ],
    [
      'three values joined, one type twice',
      'OU=b+CN=x + OU=a',
      [
        [
          ['OU', 'a'],
          ['OU', 'b'],
          ['CN', 'x'],
        ],
      ],
    ],
    ['RDNs that read the same both ways', 'DC=a,DC=a', [[['DC', 'a']], [['DC', 'a']]]],
    [
      'a user id',
      'UID=jsmith,DC=example,DC=net',
      [[['DC', 'net']], [['DC', 'example']], [['UID', 'jsmith']]],
    ],
  ])('match: %s', (_, registered, subject) => {
    expect(compareSubjectDn(registered, certificate(subject))).toBe('match');
  });

  it.each<readonly [string, string, Subject]>([
    ['DER order', 'C=SE,O=Example,CN=client one', PLAIN],
    ['with joined values', 'DC=net,DC=example,CN=J. Smith+OU=Sales', PEOPLE],
  ])('reversed: %s', (_, registered, subject) => {
    expect(compareSubjectDn(registered, certificate(subject))).toBe('reversed');
  });

  it.each<readonly [string, string, Subject]>([
    ['another value', 'CN=client two,O=Example,C=SE', PLAIN],
    ['the case of a value counts', 'CN=Client One,O=Example,C=SE', PLAIN],
    ['an RDN is missing', 'CN=client one,C=SE', PLAIN],
    ['an RDN is too many', 'CN=client one,OU=Sales,O=Example,C=SE', PLAIN],
    ['another order that is not the reverse', 'O=Example,CN=client one,C=SE', PLAIN],
    ['two RDNs are not one of two values', 'OU=Sales,CN=J. Smith,DC=example,DC=net', PEOPLE],
    ['one of two values is not two RDNs', 'O=Example+CN=client one,C=SE', PLAIN],
    ['a value of another attribute', 'O=client one,CN=Example,C=SE', PLAIN],
    ['a separator that was not escaped', 'CN=#1 client,O=Smith, Sons', AWKWARD],
    ['an unknown attribute', 'nickname=client one,O=Example,C=SE', PLAIN],
    ['no attribute at all', 'client one', PLAIN],
    ['nothing', '', PLAIN],
    [
      'text that spells the DER of another value',
      String.raw`CN=\#04024869`,
      [[['CN', octets('Hi')]]],
    ],
    ['DER that text spells', 'CN=#04024869', [[['CN', '#04024869']]]],
    ['text that spells an OID', 'CN=1.2.3', [[['CN', new ObjectIdentifier({ value: '1.2.3' })]]]],
    [
      'text that spells a time',
      `CN=${new Date(0).toString()}`,
      [[['CN', new UTCTime({ valueDate: new Date(0) })]]],
    ],
    ['bytes that are no UTF-8', String.raw`CN=\FF`, [[['CN', '\uFFFD']]]],
    ['a certificate whose text is no UTF-8', 'CN=é', [[['CN', brokenUtf8(Buffer.of(0xe9))]]]],
    ['DER with something behind it', 'CN=#0C017800', [[['CN', 'x']]]],
    ['a quotation mark that was not escaped', 'CN=a"b', [[['CN', 'a"b']]]],
    ['quotation marks inside a value', 'CN=a"b,O=c"d', [[['CN', 'a"b,O=c"d']]]],
    ['something behind a quoted value', 'CN="a"b', [[['CN', 'ab']]]],
    ['< that was not escaped', 'CN=a<b', [[['CN', 'a<b']]]],
    ['a backslash at the end', 'CN=client\\', [[['CN', 'client']]]],
    ['half an escape', String.raw`CN=client\2`, [[['CN', 'client\u0002']]]],
    ['no value behind +', 'CN=client one+,O=Example,C=SE', PLAIN],
    ['an RDN that is empty', 'CN=client one,,O=Example,C=SE', PLAIN],
    ['a comma at the end', 'CN=client one,O=Example,C=SE,', PLAIN],
    ['an OID of one number', '2=client', [[['CN', 'client']]]],
    ['an escape that is none', String.raw`CN=client\qone,O=Example,C=SE`, PLAIN],
    ['hexadecimal that is no DER', 'CN=#zz,O=Example,C=SE', PLAIN],
    ['the DER of a malformed time', 'CN=#18023909,O=Example,C=SE', PLAIN],
    ['a subject that is empty', 'CN=client one', []],
  ])('mismatch: %s', (_, registered, subject) => {
    expect(compareSubjectDn(registered, certificate(subject))).toBe('mismatch');
  });

  it('mismatch where the bytes are not a certificate', () => {
    const whole = certificate(PLAIN);
    for (const der of [Buffer.alloc(0), Buffer.of(0x30, 0), whole.subarray(0, 40)]) {
      expect(compareSubjectDn('CN=client one,O=Example,C=SE', der)).toBe('mismatch');
    }
  });

  it('do not accept a property of every JavaScript object as an attribute', () => {
    expect(parseDn('constructor=client one')).toBeUndefined();
    expect(parseDn('__proto__=client one')).toBeUndefined();
  });

  it('do not accept endless nesting, which does not exhaust the stack', () => {
    expect(parseDn(`CN=#${'3080'.repeat(30_000)}`)).toBeUndefined();
    expect(parseDn(`CN=${'"'.repeat(60_000)}x`)).toBeUndefined();
    expect(parseDn(`CN=${'\\'.repeat(60_001)}`)).toBeUndefined();
  });
});
