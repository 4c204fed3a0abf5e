import { describe, expect, it } from 'vitest';
import { principalsOf } from '#domain/ssh/principals.js';

const BOTH = new Set(['email', 'username'] as const);

describe('principals', () => {
  it('contain the address by default', () => {
    expect(principalsOf('alice@example.com', new Set(['email']), true)).toEqual([
      'alice@example.com',
    ]);
  });

  it('contain the address and the account name, or the account name alone, by configuration', () => {
    expect(principalsOf('alice@example.com', BOTH, true)).toEqual(['alice@example.com', 'alice']);
    expect(principalsOf('alice@example.com', new Set(['username']), true)).toEqual(['alice']);
  });

  it('contain no account name where two users share a local part', () => {
    expect(principalsOf('alice@example.com', BOTH, false)).toEqual(['alice@example.com']);
    expect(principalsOf('alice@example.com', new Set(['username']), false)).toEqual([]);
  });

  it.each([
    'root',
    'daemon',
    'nobody',
    'postgres',
    'www-data',
    'systemd-network',
    'ec2-user',
    '_apt',
  ])('never contain %s from an e-mail address', (name) => {
    expect(principalsOf(`${name}@example.com`, BOTH, true)).toEqual([`${name}@example.com`]);
  });

  it.each([
    'alice.b',
    '1alice',
    'alice+root',
    'Alice',
    'älice',
    '-alice',
    'a'.repeat(33),
    'alice\nroot',
    '"a@b"',
  ])('contain no account name for the local part %j', (name) => {
    expect(principalsOf(`${name}@example.com`, BOTH, true)).toEqual([`${name}@example.com`]);
  });

  it.each(['a', '_alice', 'alice-b_2', 'a'.repeat(32)])(
    'contain an account name for %s',
    (name) => {
      expect(principalsOf(`${name}@example.com`, BOTH, true)).toContain(name);
    },
  );
});
