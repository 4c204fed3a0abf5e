import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RememberedTokens } from '#domain/sessions/remembered/remembered-tokens.js';

describe('the tokens that a process remembers', () => {
  it('are those that were looked up last, at most 5,000', () => {
    const tokens = new RememberedTokens<number>();
    const hashes = Array.from({ length: 5_001 }, () => randomBytes(32));
    for (const [n, hash] of hashes.slice(0, 5_000).entries()) tokens.set(hash, n);
    const [first, second, third] = hashes as [Buffer, Buffer, Buffer];
    tokens.set(first, 0); // looked up again
    tokens.set(hashes[5_000] as Buffer, 5_000);
    expect([tokens.get(first), tokens.get(second), tokens.get(third)]).toEqual([0, undefined, 2]);
    expect(tokens.get(hashes[5_000] as Buffer)).toBe(5_000);
  });

  it('are forgotten when a look-up does not find them any more', () => {
    const tokens = new RememberedTokens<string>();
    const hash = randomBytes(32);
    tokens.set(hash, 'a session');
    tokens.set(hash, undefined);
    expect(tokens.get(hash)).toBeUndefined();
  });
});
