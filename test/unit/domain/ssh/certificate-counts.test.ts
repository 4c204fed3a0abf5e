import { describe, expect, it } from 'vitest';
import { CertificateCounts } from '#domain/ssh/certificate-counts.js';

describe('the requests that count the certificates of their user', () => {
  const MOST = 200_000;

  it('are the first, and one after every three issued certificates', () => {
    const counts = new CertificateCounts(MOST, 3);
    const limits: (number | undefined)[] = [];
    for (let request = 0; request < 7; request += 1) {
      limits.push(counts.limitOf('bob'));
      counts.noteIssued('bob');
    }
    const none = undefined;
    expect(limits).toEqual([MOST, none, none, MOST, none, none, MOST]);
    expect(counts.limitOf('ada')).toBe(MOST);
  });

  it('are followed by another one if they were refused, for any reason', () => {
    const counts = new CertificateCounts(MOST, 3);
    expect([counts.limitOf('bob'), counts.limitOf('bob')]).toEqual([MOST, MOST]);
  });

  it('are every one if each issued certificate counts', () => {
    const counts = new CertificateCounts(MOST, 1);
    counts.noteIssued('bob');
    expect(counts.limitOf('bob')).toBe(MOST);
  });
});
