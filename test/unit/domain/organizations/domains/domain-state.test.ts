import { describe, expect, it } from 'vitest';
import {
  afterCheck,
  stateOf,
} from '../../../../../src/domain/organizations/domains/domain-state.js';

const DAY = 86_400_000;
const NOW = new Date('2026-11-22T12:00:00Z');
const daysAgo = (days: number) => new Date(NOW.getTime() - days * DAY);
const hoursAhead = (at: Date) => (at.getTime() - NOW.getTime()) / 3_600_000;

describe('the state of a domain', () => {
  const facts = { verifiedAt: null, unverifiedAt: null, failures: 0 };
  it.each([
    ['pending', facts],
    ['verified', { ...facts, verifiedAt: NOW }],
    ['failing', { ...facts, verifiedAt: NOW, failures: 1 }],
    ['failing', { ...facts, verifiedAt: NOW, failures: 2 }],
    ['unverified', { ...facts, unverifiedAt: NOW, failures: 3 }],
  ] as const)('is %s', (state, of) => {
    expect(stateOf(of)).toBe(state);
  });
});

describe('a daily check', () => {
  it('that finds the record sets the failures to none, and comes again within a day', () => {
    const after = afterCheck({ failures: 2, lastProvenAt: daysAgo(3) }, 'found', NOW, 0.5);
    expect(after).toMatchObject({ failures: 0, lastProvenAt: NOW });
    expect(hoursAhead(after.nextCheckAt)).toBe(23.5);
  });

  it('that finds no record is a failure, at once', () => {
    const before = { failures: 0, lastProvenAt: daysAgo(1) };
    expect(afterCheck(before, 'missing', NOW, 0)).toEqual({
      failures: 1,
      lastProvenAt: before.lastProvenAt,
      nextCheckAt: new Date(NOW.getTime() + DAY),
    });
  });

  it.each([
    [6.99, 1, 1],
    [7, 2, 24],
    [400, 2, 24],
  ])(
    'with a fault %d days after the record was seen leaves %d failures and comes again in %d hours',
    (days, failures, hours) => {
      const after = afterCheck({ failures: 1, lastProvenAt: daysAgo(days) }, 'fault', NOW, 0);
      expect(after.failures).toBe(failures);
      expect(hoursAhead(after.nextCheckAt)).toBe(hours);
    },
  );

  it('never comes later than a day after the one before, and never earlier than 23 hours', () => {
    for (const spread of [0, 0.25, 1]) {
      const { nextCheckAt } = afterCheck({ failures: 0, lastProvenAt: NOW }, 'found', NOW, spread);
      expect(hoursAhead(nextCheckAt)).toBeLessThanOrEqual(24);
      expect(hoursAhead(nextCheckAt)).toBeGreaterThanOrEqual(23);
    }
  });
});
