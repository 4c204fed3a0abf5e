import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  AAGUID_EXTENSION,
  aaguidExtension,
  basicConstraints,
  extension,
  keyUsage,
  type CertificateRequest,
  type Name,
} from '@svc/stand-ins/certificates';
import { AAGUID, authorityOf, decide, leafOf, MODEL, ROOT, SUBJECT } from './statements.js';

const FORMATS = ['packed', 'fido-u2f'] as const;

const about = (overrides: Partial<CertificateRequest>, format: (typeof FORMATS)[number]) => () =>
  decide({ format, leaf: leafOf(ROOT, overrides) });

describe.each(FORMATS)('an attestation certificate of the format %s', (format) => {
  it('is refused before version 3', () => {
    expect(about({ version: 1, extensions: [] }, format)).toThrow('is not X.509 version 3.');
  });

  it('is refused if it is an authority, and accepted without Basic Constraints', () => {
    const extensions = [basicConstraints(true), keyUsage('sign-certificates')];
    expect(about({ extensions }, format)).toThrow('The attestation certificate is a CA.');
    expect(about({ extensions: [aaguidExtension(AAGUID)] }, format)()).toBe(MODEL);
  });

  it.each([
    ['P-384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' })],
    ['RSA', () => generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ])('is refused with a key of %s', (_, keys) => {
    expect(about({ keys: keys() }, format)).toThrow(
      "The attestation certificate's key is not on P-256.",
    );
  });

  it('may have no AAGUID extension, which names no model', () => {
    expect(about({ extensions: [basicConstraints(false)] }, format)()).toBeNull();
  });

  it('is refused if its AAGUID extension is critical or malformed', () => {
    const critical = extension(AAGUID_EXTENSION, Buffer.of(4, 16, ...AAGUID), true);
    expect(about({ extensions: [critical] }, format)).toThrow('is marked critical.');
    for (const value of [
      Buffer.of(5, 16, ...AAGUID),
      Buffer.of(4, 15, ...AAGUID),
      Buffer.of(4, 16, ...AAGUID, 0),
      Buffer.of(4, 16, ...AAGUID.subarray(1)),
      AAGUID,
      Buffer.alloc(0),
    ]) {
      const extensions = [extension(AAGUID_EXTENSION, value)];
      expect(about({ extensions }, format), value.toString('hex')).toThrow(
        'The AAGUID extension is malformed.',
      );
    }
  });

  it('is refused if the authenticator data name another model', () => {
    const aaguid = Buffer.from(AAGUID);
    aaguid[15] = 2;
    expect(() => decide({ format, credential: { aaguid } })).toThrow('disagree.');
  });
});

describe('authenticator data without a model', () => {
  it('are accepted in fido-u2f alone, which has no place for one', () => {
    const aaguid = Buffer.alloc(16);
    expect(decide({ format: 'fido-u2f', credential: { aaguid } })).toBe(MODEL);
    expect(() => decide({ credential: { aaguid } })).toThrow('disagree.');
    aaguid[3] = 1;
    expect(() => decide({ format: 'fido-u2f', credential: { aaguid } })).toThrow('disagree.');
  });
});

describe('a fido-u2f statement', () => {
  it('has exactly one certificate', () => {
    const issuer = authorityOf('Issuer');
    const statement = { leaf: leafOf(issuer), issuers: [issuer] };
    expect(decide(statement)).toBe(MODEL);
    expect(() => decide({ ...statement, format: 'fido-u2f' })).toThrow(
      'A fido-u2f attestation carries exactly one certificate.',
    );
  });

  it('is about a P-256 key', () => {
    const credential = { publicKey: undefined };
    expect(() => decide({ format: 'fido-u2f', credential })).toThrow(
      'A U2F key makes P-256 keys only.',
    );
    expect(decide({ credential })).toBe(MODEL);
  });
});

describe('the subject of a certificate of the format packed', () => {
  const NO_COUNTRY = "The attestation certificate's subject has no ISO 3166 country.";
  const NO_ORGANIZATION = "The attestation certificate's subject has no organization.";
  const NO_UNIT = 'organizational unit is not "Authenticator Attestation".';
  const NO_NAME = "The attestation certificate's subject has no common name.";
  const [country, organization, unit, name] = SUBJECT as [
    Name[number],
    Name[number],
    Name[number],
    Name[number],
  ];

  it.each<[what: string, subject: Name, message: string]>([
    ['no country', [organization, unit, name], NO_COUNTRY],
    ['two countries', [country, country, organization, unit, name], NO_COUNTRY],
    ['a country in small letters', [['C', 'se'], organization, unit, name], NO_COUNTRY],
    ['a country of three letters', [['C', 'SWE'], organization, unit, name], NO_COUNTRY],
    ['a country of one letter', [['C', 'S'], organization, unit, name], NO_COUNTRY],
    ['no organization', [country, unit, name], NO_ORGANIZATION],
    ['an empty organization', [country, ['O', ''], unit, name], NO_ORGANIZATION],
    ['two organizations', [country, organization, ['O', 'b'], unit, name], NO_ORGANIZATION],
    ['no unit', [country, organization, name], NO_UNIT],
    ['another unit', [country, organization, ['OU', 'Authenticator'], name], NO_UNIT],
    ['two units', [country, organization, unit, unit, name], NO_UNIT],
    ['no common name', [country, organization, unit], NO_NAME],
    ['an empty common name', [country, organization, unit, ['CN', '']], NO_NAME],
    ['two common names', [country, organization, unit, name, name], NO_NAME],
  ])('is refused with %s, which fido-u2f allows', (_, subject, message) => {
    expect(about({ subject }, 'packed')).toThrow(message);
    expect(about({ subject }, 'fido-u2f')()).toBe(MODEL);
  });
});
