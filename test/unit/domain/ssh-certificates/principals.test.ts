import { describe, expect, it } from 'vitest';
import { principalsOf } from '#domain/ssh-certificates/principals.js';

const BOTH = new Set(['email', 'username'] as const);

describe('principals', () => {
  it('are the address by default', () => {
    expect(principalsOf('alice@example.com', new Set(['email']), true)).toEqual([
      'alice@example.com',
    ]);
  });

  it('are the address and the account name, or the account name alone, where both are given', () => {
    expect(principalsOf('alice@example.com', BOTH, true)).toEqual(['alice@example.com', 'alice']);
    expect(principalsOf('alice@example.com', new Set(['username']), true)).toEqual(['alice']);
  });

  it('are no account name where a local part names more than one person', () => {
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
  ])('never make %s of an e-mail address', (name) => {
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
  ])('make no account name of the local part %j', (name) => {
    expect(principalsOf(`${name}@example.com`, BOTH, true)).toEqual([`${name}@example.com`]);
  });

  it.each(['a', '_alice', 'alice-b_2', 'a'.repeat(32)])('make an account name of %s', (name) => {
    expect(principalsOf(`${name}@example.com`, BOTH, true)).toContain(name);
  });
});
