import { describe, expect, it } from 'vitest';
import { expiryOf } from '../../../../src/features/oidc/token/issue-token.js';

describe('the expiry of an issued token', () => {
  it.each([
    { name: 'ends before the lifetime is over', endsBy: 1_200, expiresIn: 200, exp: 1_200 },
    // The library writes the token a second later at times, and must not count from there.
    { name: 'ends exactly with the lifetime', endsBy: 1_300, expiresIn: 300, exp: 1_300 },
    { name: 'ends a second after the lifetime', endsBy: 1_301, expiresIn: 300, exp: 1_300 },
    { name: 'ended this moment', endsBy: 1_000, expiresIn: 1, exp: 1_000 },
  ])('is set, with the issue time, if the exchanged token $name', ({ endsBy, expiresIn, exp }) => {
    const times = { iat: 1_000, exp };
    expect(expiryOf({ now: 1_000, lifetime: 300, endsBy })).toEqual({ expiresIn, ...times });
  });

  it('is left to the library if the token has no latest end', () => {
    expect(expiryOf({ now: 1_000, lifetime: 300, endsBy: undefined })).toEqual({ expiresIn: 300 });
  });
});
