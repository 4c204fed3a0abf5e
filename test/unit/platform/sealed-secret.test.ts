import { describe, expect, it } from 'vitest';
import { openSecret, sealSecret } from '#platform/crypto/sealed-secret.js';

const OLD = { root: 'the root secret of last year, retired', previousRoot: undefined };
const ROTATED = { root: 'the root secret of this year, in use', previousRoot: OLD.root };
const NEW = { root: ROTATED.root, previousRoot: undefined };

describe('a sealed secret', () => {
  it('opens under the root secret that sealed it, and reveals nothing of its content', async () => {
    const sealed = await sealSecret(OLD, 'test', 'the very secret');
    expect(await openSecret(OLD, 'test', sealed)).toEqual({
      text: 'the very secret',
      isOutdated: false,
    });
    expect(Buffer.from(sealed.split('.')[3] ?? '', 'base64url').toString()).not.toContain('secret');
  });

  it('opens under the previous root secret too, and is outdated then', async () => {
    const sealed = await sealSecret(OLD, 'test', 'x');
    expect(await openSecret(ROTATED, 'test', sealed)).toEqual({ text: 'x', isOutdated: true });
  });

  it('is sealed under the present root secret, never the previous one', async () => {
    const sealed = await sealSecret(ROTATED, 'test', 'x');
    expect(await openSecret(NEW, 'test', sealed)).toEqual({ text: 'x', isOutdated: false });
    expect(await openSecret(OLD, 'test', sealed)).toBeUndefined();
  });

  it('does not open for another purpose', async () => {
    const sealed = await sealSecret(OLD, 'test', 'x');
    expect(await openSecret(OLD, 'another', sealed)).toBeUndefined();
  });

  it('does not open when one byte changed, or when it is malformed', async () => {
    const sealed = await sealSecret(OLD, 'test', 'x'.repeat(30));
    const parts = sealed.split('.');
    const ciphertext = Buffer.from(parts[3] ?? '', 'base64url');
    ciphertext[0] = (ciphertext[0] ?? 0) ^ 1;
    const changed = parts.with(3, ciphertext.toString('base64url')).join('.');
    expect(changed).not.toBe(sealed);
    expect(await openSecret(OLD, 'test', changed)).toBeUndefined();
    expect(await openSecret(OLD, 'test', 'no JWE at all')).toBeUndefined();
  });
});
