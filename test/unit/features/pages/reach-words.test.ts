import { describe, expect, it } from 'vitest';
import {
  isInOriginOf,
  isStartAddress,
  launchAddress,
} from '../../../../src/domain/oauth/applications/launch-address.js';
import { conditionWords } from '../../../../src/features/pages/account/reach-words.js';
import { timeLeft } from '../../../../src/features/pages/shell/moment.js';

const NONE = { touchWithinSeconds: null, models: null, userVerification: null } as const;

describe('the words of a reach', () => {
  it.each([
    [460 * 60_000, '7 h 40 min'],
    [480 * 60_000, '8 h'],
    [59_999, 'less than a minute'],
    [60_000, '1 min'],
    [-1, 'less than a minute'],
  ])('say how long %i ms are', (milliseconds, words) => {
    expect(timeLeft(new Date(1e12 + milliseconds), new Date(1e12))).toBe(words);
  });

  it.each([
    [3600, '1 hour'],
    [7200, '2 hours'],
    [900, '15 minutes'],
    [90, '90 seconds'],
    [1, '1 second'],
  ])('say the age of a touch of %i seconds', (seconds, words) => {
    const conditions = conditionWords({ ...NONE, touchWithinSeconds: seconds });
    expect(conditions).toEqual([expect.stringContaining(words)]);
  });

  it('name each condition, and none without any', () => {
    expect(conditionWords(NONE)).toEqual([]);
    const all = { touchWithinSeconds: 60, models: 'fips-only', userVerification: 'required' };
    expect(conditionWords(all as never)).toHaveLength(3);
  });
});

describe('a start address', () => {
  const approvedUris = ['https://a.example/cb', 'com.example.app:/cb'];
  it.each([
    ['https://a.example/start', true],
    ['https://A.example:443/', true],
    ['https://a.example:444/', false],
    ['https://b.example/', false],
    ['http://a.example/', false],
    ['com.example.app:/start', false],
    ['data:text/html,x', false],
    ['javascript:alert(1)', false],
    ['https://x@a.example/', false],
    [7, false],
    [undefined, false],
  ])('%s is a link: %s', (address, isLink) => {
    const metadata = { initiate_login_uri: address };
    expect(launchAddress({ metadata, approvedUris })).toBe(isLink ? address : null);
    expect(launchAddress({ metadata, approvedUris: null })).toBeNull();
    expect(launchAddress({ metadata, approvedUris: [] })).toBeNull();
  });

  it('has no origin in common with another address without one', () => {
    expect(isInOriginOf('data:a', ['data:b'])).toBe(false);
    expect(isInOriginOf('no address', ['no address'])).toBe(false);
    expect(isStartAddress('https://')).toBe(false);
  });
});
