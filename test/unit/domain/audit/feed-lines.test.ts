import { describe, expect, it } from 'vitest';
import type { FeedPlace, FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { readFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import { READ_TIME, readFeedLines } from '#domain/audit/feed/feed-lines.js';
import type { ErrorCode } from '#platform/errors/catalogue.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { TestClock } from '../../../support/test-clock.js';

/** The number of events in one batch, and the time that reading a batch takes. */
const BATCH = 1_000;
const OF_ONE_READ = READ_TIME / 4;

const START: FeedPlace = { epoch: '0', xid: '0', id: '00000000-0000-4000-8000-000000000000' };

/** Creates a feed of `length` events. The events at the positions `rare` have the type `rare`. */
function feedOf(length: number, rare: readonly number[]): FeedRow[] {
  return Array.from({ length }, (_, n) => {
    const feedPlace = { ...START, xid: String(n + 1) };
    return { type: rare.includes(n) ? 'rare' : 'logout', feedPlace } as FeedRow;
  });
}

/**
 * Requests the events of the type `rare` until its place in the feed no longer moves, as a program
 * would do. Each request starts after the last line of the response before. If that response has no
 * lines, the request starts at the response's cursor.
 */
async function copy(feed: readonly FeedRow[]) {
  const clock = new TestClock();
  const read = (after: FeedPlace, limit: number) => {
    clock.advance(OF_ONE_READ);
    const from = Number(after.xid);
    return Promise.resolve(feed.slice(from, from + limit));
  };
  const found: string[] = [];
  const longest = { milliseconds: 0 };
  for (let place = START, asked = 1; ; asked += 1) {
    const began = clock.monotonic();
    const query = { start: place, limit: Number.POSITIVE_INFINITY, types: ['rare'] };
    const { batches, next } = await readFeedLines(clock, read, query);
    const lines: FeedRow[] = [];
    for await (const batch of batches) lines.push(...batch);
    found.push(...lines.map(({ feedPlace }) => feedPlace.xid));
    longest.milliseconds = Math.max(longest.milliseconds, clock.monotonic() - began);
    const after = lines.at(-1)?.feedPlace ?? readFeedCursor(next ?? '');
    if (!after || after.xid === place.xid) return { found, longest, place, asked };
    place = after;
  }
}

it('copies a rare type of a long log, each event once, by responses that end in time', async () => {
  const rare = [3, 6_500, 6_501, 19_999];
  const { found, longest, place, asked } = await copy(feedOf(25 * BATCH, rare));
  expect(found).toEqual(rare.map((n) => String(n + 1)));
  expect(place.xid).toBe(String(25 * BATCH));
  expect(longest.milliseconds).toBeLessThanOrEqual(READ_TIME);
  expect(asked).toBeLessThan(12);
});

it('goes on behind the whole log if it has no event of the type', async () => {
  expect(await copy(feedOf(9 * BATCH + 5, []))).toMatchObject({
    found: [],
    place: { xid: String(9 * BATCH + 5) },
  });
});

it('stays at the place of the reader at the end of the log', async () => {
  expect(await copy([])).toMatchObject({ found: [], place: START, asked: 1 });
});

describe('a batch that fails', () => {
  const feed = feedOf(9 * BATCH, [BATCH]);
  const away = Object.assign(new Error('terminating connection'), { code: '57P01' });
  const fault = (code: ErrorCode) => new DomainError(code, 'A fault.');
  const PASSING = [fault('rate_limited'), fault('unavailable'), fault('too_many'), away];
  const FINAL = [fault('feed_restarted'), fault('admin_required'), fault('unauthenticated')];
  const OTHER = [...FINAL, new Error('a defect')];

  /**
   * Requests events of some types. The read after `whole` batches fails: at once, or, if `isLate`,
   * after the longest time that it may wait.
   */
  const ask = (types: readonly string[], whole: number, error: Error, isLate = true) => {
    const clock = new TestClock();
    const waits: number[] = [];
    const read = (after: FeedPlace, limit: number, patience: number) => {
      const isWhole = waits.push(patience) <= whole;
      if (isWhole) clock.advance(OF_ONE_READ);
      else if (isLate) clock.advance(patience);
      const from = Number(after.xid);
      return isWhole ? Promise.resolve(feed.slice(from, from + limit)) : Promise.reject(error);
    };
    const query = { start: START, limit: Number.POSITIVE_INFINITY, types };
    return { lines: readFeedLines(clock, read, query), waits };
  };
  const all = async (lines: ReturnType<typeof readFeedLines>) => {
    const read: FeedRow[] = [];
    for await (const batch of (await lines).batches) read.push(...batch);
    return read.length;
  };

  it.each(PASSING)('ends the search before the first line at its place: %s', async (error) => {
    const { lines } = ask(['none'], 2, error);
    expect(readFeedCursor((await lines).next ?? '')?.xid).toBe(String(2 * BATCH));
    expect(await all(lines)).toBe(0);
  });

  it.each(OTHER)('refuses the search before the first line: %s', async (error) => {
    await expect(ask(['none'], 2, error).lines).rejects.toBe(error);
  });

  it.each([...PASSING, ...OTHER])('refuses the request if it is the first: %s', async (error) => {
    await expect(ask(['none'], 0, error).lines).rejects.toBe(error);
  });

  it.each(PASSING)('after the time of the response ends it behind a line: %s', async (error) => {
    const { lines, waits } = ask(['logout'], 3, error);
    expect(await all(lines)).toBe(3 * BATCH - 1);
    expect(waits.at(-1)).toBeLessThanOrEqual(READ_TIME / 4 + 1);
  });

  it.each(PASSING)('within the time of the response cuts it off: %s', async (error) => {
    await expect(all(ask(['logout'], 3, error, false).lines)).rejects.toBe(error);
  });

  it.each(OTHER)('cuts a response off that has begun: %s', async (error) => {
    await expect(all(ask(['logout'], 3, error).lines)).rejects.toBe(error);
  });
});

it.each([['none'], ['logout']])(
  'reads no further batch of %s for a client that is gone',
  async (type) => {
    const gone = new AbortController();
    const feed = feedOf(9 * BATCH, []);
    let reads = 0;
    const read = (after: FeedPlace, limit: number) => {
      reads += 1;
      if (reads === 2) gone.abort();
      return Promise.resolve(feed.slice(Number(after.xid), Number(after.xid) + limit));
    };
    const query = {
      start: START,
      limit: Number.POSITIVE_INFINITY,
      types: [type],
      signal: gone.signal,
    };
    const { batches } = await readFeedLines(new TestClock(), read, query);
    for await (const batch of batches) expect(batch).toHaveLength(BATCH);
    expect(reads).toBe(2);
  },
);
