import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Marks } from '#domain/admin/database-failover/marks.js';
import { TestClock } from '../../../../support/test-clock.js';

describe('what a process remembers of its commits', () => {
  it('every id of the last minute, and the newest before', () => {
    const clock = new TestClock();
    const marks = new Marks(60_000, Infinity, clock);
    const [first, second] = [ids(3), ids(2)];
    marks.note(first);
    clock.advance(50_000);
    marks.note(second);
    expect(all(marks)).toEqual(plain([...first, ...second]));
    clock.advance(10_001);
    const third = ids(1);
    marks.note(third);
    expect(all(marks)).toEqual(plain([first[2] ?? '', ...second, ...third]));
    clock.advance(3_600_000);
    const fourth = ids(1);
    marks.note(fourth);
    expect(all(marks)).toEqual(plain([...third, ...fourth]));
  });

  it('every id of the minute before PostgreSQL went away, also if it is away for longer', () => {
    const clock = new TestClock();
    const marks = new Marks(60_000, Infinity, clock);
    const noted = ids(3);
    marks.note(noted);
    clock.advance(90_000);
    expect(all(marks)).toEqual(plain(noted));
    expect(all(marks)).toEqual(plain(noted));
  });

  it('ids of one second and of several, with 16 bytes each', () => {
    const clock = new TestClock();
    const marks = new Marks(60_000, Infinity, clock);
    const noted: string[] = [];
    for (let second = 0; second < 60; second += 1) {
      const some = ids(50);
      noted.push(...some);
      marks.note(some.slice(0, 20));
      marks.note(some.slice(20));
      clock.advance(999);
    }
    expect(all(marks)).toEqual(plain(noted));
    marks.take();
    expect(all(marks)).toEqual([]);
  });

  it('nothing whose row may have been deleted because it expired', () => {
    const clock = new TestClock();
    const marks = new Marks(60_000, 86_400_000, clock);
    marks.note(ids(1));
    clock.advance(86_399_000);
    expect(all(marks)).toHaveLength(1);
    clock.advance(1_001);
    expect(all(marks)).toEqual([]);
    const none = new Marks(60_000, 0, clock);
    none.note(ids(1));
    expect([none.areProvable, all(none)]).toEqual([false, []]);
  });
});

function ids(count: number): string[] {
  return Array.from({ length: count }, () => randomUUID());
}

function plain(some: readonly string[]): string[] {
  return some.map((id) => id.replaceAll('-', '')).toSorted();
}

function all(marks: Marks): string[] {
  const taken = marks.take();
  marks.putBack(taken);
  return plain(marks.provableIds(taken));
}
