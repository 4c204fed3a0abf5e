import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { FeedReader, inOrder, organizationOf, writeEvent } from '../../support/feed-reader.js';
import { atScale } from '../../support/scale.js';

/** The number of writers, each with its own connection, and of the transactions of each. */
const WRITERS = 64;
const OF_ONE = atScale({ small: 10, full: 100 });

/**
 * The least time for which one transaction stays open, in milliseconds, while a reader polls the
 * feed.
 */
const HELD = atScale({ small: 300, full: 10_000 });

const ADA = 'ada@writers.example';

let database: TestDatabase;
let app: TestApp;
let reader: FeedReader;
let org: string;
const writers: Client[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  app = await startTestApp({ database });
  reader = new FeedReader((await app.enrolled(ADA)).client);
  org = await organizationOf(app.dataSource, ADA);
  for (let n = 0; n < WRITERS; n += 1) {
    const writer = new Client({ connectionString: database.url });
    await writer.connect();
    writers.push(writer);
  }
});
afterAll(async () => {
  await Promise.all(writers.map((writer) => writer.end()));
  await app.close();
  await database.drop();
});

/**
 * Transactions that write events in different ways. Each returns the ids of the events that remain
 * after its commit.
 */
const WAYS: readonly ((writer: Client) => Promise<string[]>)[] = [
  async (writer) => {
    const id = await writeEvent(writer, org);
    await pause();
    return [id];
  },
  // This transaction gets its id, which decides the order of the feed, long before its first event.
  async (writer) => {
    await writer.query('SELECT pg_current_xact_id()');
    await pause();
    return [await writeEvent(writer, org), await writeEvent(writer, org)];
  },
  async (writer) => {
    const kept = [await writeEvent(writer, org)];
    await writer.query('SAVEPOINT half');
    await writeEvent(writer, org);
    await pause();
    await writer.query('ROLLBACK TO half');
    return [...kept, await writeEvent(writer, org)];
  },
  async (writer) => {
    await writeEvent(writer, org);
    await pause();
    await writer.query('ROLLBACK');
    return [];
  },
];

/** Waits for a random time below 25 ms, in steps of 1 ms. */
async function pause(): Promise<void> {
  for (let left = randomInt(25); left > 0; left -= 1) await delay(1);
}

/**
 * Runs transactions on one connection, each in another of {@link WAYS}. Returns the ids of the
 * committed events.
 */
async function write(writer: Client, first: number, transactions: number): Promise<string[]> {
  const committed: string[] = [];
  for (let n = 0; n < transactions; n += 1) {
    await writer.query('BEGIN');
    const left = (await WAYS[(first + n) % WAYS.length]?.(writer)) ?? [];
    await writer.query('COMMIT'); // only a warning if the transaction was rolled back
    committed.push(...left);
  }
  return committed;
}

/** Runs all writers at once, and returns the ids of the events that they committed. */
async function writeAll(transactions: number): Promise<string[]> {
  const each = writers.map((writer, index) => write(writer, index, transactions));
  return (await Promise.all(each)).flat();
}

describe(`${WRITERS} writers with open transactions of different lengths`, () => {
  it(`are read while they write: each committed event once, in order, and none missing`, async () => {
    await reader.skip(app.dataSource, org);
    const state = { isWriting: true };
    const writing = writeAll(OF_ONE).finally(() => {
      state.isWriting = false;
    });
    let pages = 0;
    while (state.isWriting) if ((await reader.page()).length > 0) pages += 1;
    const committed = await writing;
    await reader.until(committed.length);
    expect(reader.ids).toEqual(await inOrder(app.dataSource, committed));
    expect(new Set(reader.ids).size).toBe(committed.length);
    expect(committed.length).toBeGreaterThan(WRITERS * OF_ONE);
    expect(pages).toBeGreaterThan(1); // it read while the writers wrote
  });

  it(`are all read after a transaction that was open for ${HELD} ms, which comes first`, async () => {
    await reader.skip(app.dataSource, org);
    const open = app.dataSource.createQueryRunner();
    await open.startTransaction();
    try {
      const early = await writeEvent(open, org);
      const until = performance.now() + HELD;
      const writing = writeAll(2);
      while (performance.now() < until) expect(await reader.page()).toEqual([]);
      const committed = [early, ...(await writing)];
      expect(await reader.page()).toEqual([]);
      await open.commitTransaction();
      await reader.until(committed.length);
      expect(reader.ids[0]).toBe(early);
      expect(reader.ids).toEqual(await inOrder(app.dataSource, committed));
      expect(reader.ids).toHaveLength(committed.length);
    } finally {
      await open.release();
    }
  });
});
