import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  openPrivateKey,
  sealPrivateKey,
} from '#domain/organizations/issuers/document-key/sealed-key.js';
import { publishedKeys } from '#domain/organizations/issuers/issuer-key-state.js';
import {
  isIssuerLabel,
  isReservedLabel,
  issuerOfLabel,
} from '#domain/organizations/issuers/issuer-label.js';
import { RESERVED_LABELS } from '#domain/organizations/issuers/reserved-labels.js';

const at = (hours: number) => new Date(Date.UTC(2026, 0, 1, hours));

describe('the states of the keys of an issuer', () => {
  const old = { kid: 'old', signsFrom: at(0), publishedUntil: at(35) };
  const next = { kid: 'next', signsFrom: at(34), publishedUntil: null };
  it.each([
    ['before the next key signs', 33, { old: 'signing', next: 'next' }],
    ['at the moment from which it signs', 34, { old: 'retired', next: 'signing' }],
    ['until the end of the publication', 34.9, { old: 'retired', next: 'signing' }],
    ['at that end', 35, { next: 'signing' }],
  ])('are decided by the time alone: %s', (_, hour, expected) => {
    const keys = publishedKeys([next, old], at(hour));
    expect(Object.fromEntries(keys.map(({ kid, state }) => [kid, state]))).toEqual(expected);
  });
});

describe('the label of an issuer', () => {
  it('has the form of a DNS label of 3 to 63 characters', () => {
    for (const label of ['abc', 'a1-b2', '4dogs', 'a'.repeat(63), 'a-b--c']) {
      expect([label, isIssuerLabel(label)]).toEqual([label, true]);
    }
    for (const label of [
      'ab',
      'a'.repeat(64),
      '-ab',
      'ab-',
      'ab--c',
      'xn--abc',
      'a.b',
      'a_b',
      'ABC',
      'abc\n',
      '',
    ]) {
      expect([label, isIssuerLabel(label)]).toEqual([label, false]);
    }
  });

  it('is reserved where its host could be taken for one of the service', () => {
    for (const label of [
      'www',
      'api',
      'auth',
      'login',
      'admin',
      'mail',
      'static',
      'oauth',
      'svc',
      'status',
    ]) {
      expect([label, isReservedLabel(label)]).toEqual([label, true]);
    }
    expect(isReservedLabel('acme')).toBe(false);
    expect([...RESERVED_LABELS].filter((label) => label !== label.toLowerCase())).toEqual([]);
  });

  it('makes an issuer with the scheme and the port of the base URL', () => {
    expect(issuerOfLabel('https://login.example.com', 'acme')).toBe(
      'https://acme.login.example.com',
    );
    expect(issuerOfLabel('http://localhost:3000', 'acme')).toBe('http://acme.localhost:3000');
  });
});

describe('a sealed private key', () => {
  const place = { orgId: 'a', label: 'acme', kid: 'k' };
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const dataKey = randomBytes(32);

  it('opens with its data key in its place, and differs each time', () => {
    const sealed = sealPrivateKey(dataKey, place, privateKey);
    expect(openPrivateKey(dataKey, place, sealed).equals(privateKey)).toBe(true);
    expect(sealPrivateKey(dataKey, place, privateKey)).not.toEqual(sealed);
  });

  it('opens for nothing else: another key, another place, a changed byte, a shorter tag', () => {
    const sealed = sealPrivateKey(dataKey, place, privateKey);
    const opens = (key: Buffer, where: typeof place, bytes: Buffer) => {
      try {
        return openPrivateKey(key, where, bytes).type;
      } catch {
        return 'refused';
      }
    };
    expect(opens(dataKey, place, sealed)).toBe('private');
    expect(opens(randomBytes(32), place, sealed)).toBe('refused');
    for (const name of ['orgId', 'label', 'kid'] as const) {
      expect(opens(dataKey, { ...place, [name]: 'other' }, sealed)).toBe('refused');
    }
    for (const index of [0, 1, 13, 29, sealed.length - 1]) {
      const changed = Buffer.from(sealed);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect([index, opens(dataKey, place, changed)]).toEqual([index, 'refused']);
    }
    expect(opens(dataKey, place, sealed.subarray(0, 20))).toBe('refused');
    expect(opens(dataKey, place, Buffer.alloc(0))).toBe('refused');
  });
});
