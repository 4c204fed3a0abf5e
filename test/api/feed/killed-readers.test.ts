import { generateKeyPairSync, randomInt } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writePrivateKey } from '@svc/openssh';
import { startTestApp, type TestApp } from '../../support/app.js';
import { runScript } from '../../support/child-script.js';
import { newAddress, type Client } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import {
  FEED,
  FeedReader,
  inOrder,
  organizationOf,
  writeEvent,
  type FeedEvent,
} from '../../support/feed-reader.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { rows } from '../../support/rows.js';
import { atScale } from '../../support/scale.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import '../../support/full-scale-only.js';

const EVENTS = atScale({ small: 3_000, full: 60_000 });
const KILLS = atScale({ small: 3, full: 30 });

const ADA = 'ada@killed.example';

let database: TestDatabase;
let folder: string;
let argument: ReplicaArgument;
let app: TestApp;
let ada: Client;
let org: string;
let reader: FeedReader;

beforeAll(async () => {
  database = await createTestDatabase();
  folder = await makeTemporaryDirectory();
  const { privateKey } = generateKeyPairSync('ed25519');
  argument = { database, environment: { SVC_SSH_CA_KEY: writePrivateKey(privateKey, 'ca') } };
  app = await startTestApp(argument);
  ({ client: ada } = await app.enrolled(ADA));
  org = await organizationOf(app.dataSource, ADA);
  reader = new FeedReader(ada, '', 1_000);
});
afterAll(async () => {
  await app.close();
  await database.drop();
  await removeDirectory(folder);
});

/**
 * Inserts many events in one transaction, each with a text of `bytes` characters. Returns their
 * ids.
 */
async function writeMany(events: number, bytes: number): Promise<string[]> {
  const written = await rows<{ id: string }>(
    app.dataSource,
    `INSERT INTO audit_events (id, type, class, org_id, details)
     SELECT gen_random_uuid(), 'logout', 'auth', $1, jsonb_build_object('text', repeat('x', $3))
     FROM generate_series(1, $2) RETURNING id`,
    [org, events, bytes],
  );
  return written.map(({ id }) => id);
}

const headersOf = (client: Client) => ({
  cookie: `svc_session=${client.cookie('svc_session')}`,
  'x-forwarded-for': newAddress(),
});

/** Parses the complete lines of a text. The part after the last newline is dropped. */
function wholeLines(text: string): FeedEvent[] {
  const lines = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as FeedEvent);
}

const idsOf = (events: readonly FeedEvent[]) => events.map(({ id }) => id);

describe('a reader that is killed while it copies the feed', () => {
  it('goes on after its last whole line: each event is there once', async () => {
    await reader.skip(app.dataSource, org);
    const file = join(folder, 'copy.ndjson');
    // The copy begins with one event and its cursor, from which the copying process goes on.
    const first = await writeEvent(app.dataSource, org);
    await reader.until(1);
    writeFileSync(file, `${JSON.stringify({ id: first, cursor: reader.cursor })}\n`);
    const written = [first, ...(await writeMany(EVENTS, 100))];
    await reader.until(written.length);

    const copier = (most?: number) =>
      runScript<{ status: number }>('feed-copier.js', {
        url: `${app.baseUrl}${FEED}`,
        file,
        headers: headersOf(ada),
        most,
      });
    let cut = 0;
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = wholeLines(readFileSync(file, 'utf8')).length;
      const killed = copier(30_000 + randomInt(10_000));
      const grows = () => wholeLines(readFileSync(file, 'utf8')).length > before + 20;
      await vi.waitUntil(grows, { timeout: 90_000, interval: 1 });
      await killed.kill();
      if (!readFileSync(file, 'utf8').endsWith('\n')) cut += 1;
      written.push(await writeEvent(app.dataSource, org));
    }
    expect(cut).toBeGreaterThan(0);
    expect(wholeLines(readFileSync(file, 'utf8')).length).toBeLessThan(EVENTS);

    await reader.until(written.length);
    const last = copier();
    expect((await last.answer).status).toBe(200);
    await last.gone;
    const text = readFileSync(file, 'utf8');
    expect(text.endsWith('\n')).toBe(true);
    expect(idsOf(wholeLines(text))).toEqual(await inOrder(app.dataSource, written));
    expect(wholeLines(text)).toHaveLength(EVENTS + 1 + KILLS);
  });
});

/**
 * Requests the feed as NDJSON after a cursor, and returns the response when its headers have
 * arrived.
 */
async function open(baseUrl: string, cursor: string): Promise<IncomingMessage> {
  const answer = Promise.withResolvers<IncomingMessage>();
  const headers = headersOf(ada);
  get(
    `${baseUrl}${FEED}&format=ndjson&after=${cursor}`,
    { headers, agent: false },
    answer.resolve,
  ).on('error', answer.reject);
  return answer.promise;
}

/** Reads the body of a response. `isCut` is true if the connection ended before the body did. */
async function textOf(answer: IncomingMessage): Promise<{ text: string; isCut: boolean }> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    return { text: Buffer.concat(chunks).toString(), isCut: false };
  } catch {
    return { text: Buffer.concat(chunks).toString(), isCut: true };
  }
}

describe('a server that is killed while it answers', () => {
  it('cuts the answer off, and the reader goes on at another one: each event once', async () => {
    await reader.skip(app.dataSource, org);
    let { cursor } = reader;
    // more than fits into the buffers of a connection
    const written = await writeMany(3_000, 8_000);
    await reader.until(written.length);
    const read: FeedEvent[] = [];
    for (let kill = 0; kill < atScale({ small: 1, full: 5 }); kill += 1) {
      const server = runScript<ReplicaAnswer>('replica.ts', argument);
      const answer = await open((await server.answer).baseUrl, cursor);
      expect(answer.statusCode).toBe(200);
      await server.kill(); // until now the client has read only the first bytes of the body
      const { text, isCut } = await textOf(answer);
      expect(isCut).toBe(true);
      read.push(...wholeLines(text));
      cursor = read.at(-1)?.cursor ?? cursor;
      const events = await writeMany(1_000, 8_000);
      await reader.until(written.push(...events));
    }
    expect(read.length).toBeGreaterThan(0);
    expect(read.length).toBeLessThan(written.length);
    const { text, isCut } = await textOf(await open(app.baseUrl, cursor));
    expect(isCut).toBe(false);
    read.push(...wholeLines(text));
    expect(idsOf(read)).toEqual(await inOrder(app.dataSource, written));
    expect(read).toHaveLength(written.length);
  });
});
