import { isDeepStrictEqual } from 'node:util';
import { parseDn } from '../../../../src/features/oidc/protocol/clients/subject-dn.js';
import { wordsBy } from '../../engine/structures.js';
import { rule, type FuzzTarget } from '../../engine/target.js';

export const target: FuzzTarget = {
  parser: 'parseDn',
  seeds: [
    'CN=client-1,O=Example AB,C=SE',
    'OU=Sales+CN=J.  Smith,DC=example,DC=net',
    '1.3.6.1.4.1.1466.0=#04024869',
    'CN=Lu\\C4\\8Di\\C4\\87',
    'O="Sue, Grabbit and Runn";C=GB',
    'CN=James \\"Jim\\" Smith\\, III',
  ].map((text) => Buffer.from(text)),
  dictionary: [
    'CN=',
    'O=',
    'OID.2.5.4.3=',
    ',',
    ';',
    '+',
    '"',
    '\\',
    '\\20',
    '\\FF',
    '#0c03414243',
    '#180d32303236303130313030305a',
    '#',
  ],
  structure: wordsBy(/\\[\da-f]{2}|\\.|\w+|[^\w]/gsu),
  longest: 1024,
  run(input) {
    const parsed = parseDn(input.toString());
    if (!parsed) return false;
    // The name is written again with every character escaped. Parsing that text must give the same
    // name.
    const written = parsed.map((rdn) => rdn.map(writtenAttribute).join('+')).join(',');
    rule(isDeepStrictEqual(parseDn(written), parsed), 'a written name is read as another name');
    return true;
  },
};

/** Writes an attribute of canonical form (`oid=text` or `oid#hex`) in the form of RFC 4514. */
function writtenAttribute(attribute: string): string {
  const [, type = '', separator, value = ''] = /^([\d.]+)([=#])(.*)$/su.exec(attribute) ?? [];
  if (separator === '#') return `${type}=#${value}`;
  const escaped = Array.from(
    Buffer.from(value),
    (byte) => `\\${byte.toString(16).padStart(2, '0')}`,
  );
  return `${type}=${escaped.join('')}`;
}
