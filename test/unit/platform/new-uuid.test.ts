import { describe, expect, it } from 'vitest';
import { uuidsBy } from '#platform/clock/random.js';

const NOON = Date.parse('2026-01-15T12:00:00.123Z');

describe('a new UUIDv7', () => {
  it('begins with its time, and has the version 7 and the variant of RFC 9562', () => {
    const uuid = uuidsBy(() => NOON)();
    expect(uuid).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16)).toBe(NOON);
  });

  it('sorts after every earlier one: in one millisecond, and after the clock is set back', () => {
    let now = NOON;
    const newUuid = uuidsBy(() => now);
    const made = Array.from({ length: 10_000 }, newUuid);
    for (now of [NOON - 60_000, NOON + 1, NOON + 60_000]) made.push(newUuid(), newUuid());
    expect(made).toEqual([...new Set(made)].toSorted());
    expect(made.at(-1)?.replaceAll('-', '').slice(0, 12)).toBe(now.toString(16).padStart(12, '0'));
  });
});
