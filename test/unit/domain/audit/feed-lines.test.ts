import { expect, it } from 'vitest';
import type { FeedPlace, FeedRow } from '#domain/audit/feed/audit-feed.repository.js';
import { readFeedCursor } from '#domain/audit/feed/feed-cursor.js';
import { READ_TIME, readFeedLines } from '#domain/audit/feed/feed-lines.js';
import { TestClock } from '../../../support/test-clock.js';

/** The events of one batch, and the time that the reading of it takes. */
const BATCH = 1_000;
const OF_ONE_READ = READ_TIME / 4;

const START: FeedPlace = { epoch: '0', xid: '0', id: '00000000-0000-4000-8000-000000000000' };

/** Makes a feed of `length` events, of which those at `rare` have a type of their own. */
function feedOf(length: number, rare: readonly number[]): FeedRow[] {
  return Array.from({ length }, (_, n) => {
    const feedPlace = { ...START, xid: String(n + 1) };
    return { type: rare.includes(n) ? 'rare' : 'logout', feedPlace } as FeedRow;
  });
}

/**
 * Asks for the rare events as a program does: from the last line on, or without a line from the
 * cursor of the response.
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
