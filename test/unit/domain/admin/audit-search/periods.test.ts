import { describe, expect, it } from 'vitest';
import { daysOf, parseDay, PERIODS, type Period } from '#domain/admin/audit-search/periods.js';
import { parseNetwork } from '#domain/admin/audit-search/network.js';

/** A Tuesday, one millisecond before midnight in UTC. */
const TUESDAY = new Date('2026-11-24T23:59:59.999Z');
const DAY = 86_400_000;

describe('relative days', () => {
  it.each<[Period, string, string]>([
    ['today', '2026-11-24', '2026-11-24'],
    ['yesterday', '2026-11-23', '2026-11-23'],
    ['last_7_days', '2026-11-18', '2026-11-24'],
    ['last_30_days', '2026-10-26', '2026-11-24'],
    ['this_week', '2026-11-23', '2026-11-24'],
    ['last_week', '2026-11-16', '2026-11-22'],
    ['last_tuesday', '2026-11-17', '2026-11-17'],
    ['last_monday', '2026-11-23', '2026-11-23'],
    ['last_wednesday', '2026-11-18', '2026-11-18'],
    ['last_sunday', '2026-11-22', '2026-11-22'],
  ])('%s on a Tuesday is %s to %s', (period, from, to) => {
    expect(daysOf(period, TUESDAY)).toEqual({ from, to });
  });

  it('name a weekday of the seven days before today, on every day of the week', () => {
    const names = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
    for (let day = 0; day < 7; day += 1) {
      const now = new Date(TUESDAY.getTime() + day * DAY);
      for (const [weekday, name] of names.entries()) {
        const { from } = daysOf(`last_${name}` as Period, now);
        const at = parseDay(from)?.getTime() ?? 0;
        expect(new Date(at).getUTCDay()).toBe(weekday);
        expect(now.getTime() - at).toBeGreaterThanOrEqual(DAY);
        expect(now.getTime() - at).toBeLessThan(8 * DAY);
      }
    }
  });

  it('of every period end today or before, and begin no later than they end', () => {
    for (const period of Object.keys(PERIODS) as Period[]) {
      const { from, to } = daysOf(period, TUESDAY);
      expect(from <= to && to <= '2026-11-24', period).toBe(true);
    }
  });

  it.each(['2026-02-30', '2026-2-3', '1969-12-31', '9999-01-01', 'tuesday', ''])(
    'are not read from "%s"',
    (text) => expect(parseDay(text)).toBeUndefined(),
  );
});

describe('a network', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3/32', true],
    ['10.1.0.0/16', '10.1.0.0/16', false],
    ['::ffff:10.1.2.3', '10.1.2.3/32', true],
    ['2001:db8::/32', '2001:db8::/32', false],
    ['2001:db8::1', '2001:db8::1/128', true],
  ])('is read from %s', (text, written, isOneAddress) => {
    expect(parseNetwork(text)).toMatchObject({ text: written, isOneAddress });
  });

  it.each(['10.1', '10.1.2.3/33', 'fe80::1%eth0', "1'; --", '10.0.0.0/8/8', ''])(
    'is not read from "%s"',
    (text) => expect(parseNetwork(text)).toBeUndefined(),
  );
});
