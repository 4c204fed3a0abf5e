import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { proveConsistency, readCheckpoints } from '#domain/admin/audit-search/sealed-log.js';
import { watch } from '../../../packages/svc/src/audit/watch.js';
import { readCheckpoints as readFile } from '../../../packages/svc/src/audit/signed-note.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { writeEvent } from '../../support/feed-reader.js';
import { connectTo, TestSeal } from '../../support/seal.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

let database: TestDatabase;
let dataSource: DataSource;
let seal: TestSeal;
let folder: string;

beforeAll(async () => {
  database = await createTestDatabase();
  dataSource = await connectTo(database);
  seal = new TestSeal(dataSource);
  folder = await makeTemporaryDirectory();
});
afterAll(async () => {
  await removeDirectory(folder);
  await dataSource.destroy();
  await database.drop();
});

/** Answers the requests of `svc audit watch` about an organization, and counts them. */
function serverOf(org: string) {
  const { manager } = dataSource;
  const server = { requests: 0, get };
  async function get(path: string): Promise<object> {
    server.requests += 1;
    const { pathname, searchParams } = new URL(path, 'http://localhost');
    const value = (name: string) => searchParams.get(name) ?? '';
    if (pathname.endsWith('/proof')) {
      const sizes = [Number(value('from')), Number(value('to'))] as const;
      const { hashes, previous } = await proveConsistency(manager, org, value('epoch'), sizes);
      return { hashes: hashes.map((hash) => hash.toString('base64')), previous };
    }
    const [epoch = '', size] = value('after').split('.');
    const after = size === undefined ? 'newest' : { epoch, size: Number(size) };
    const { checkpoints } = await readCheckpoints(manager, org, after, Number(value('limit')));
    const last = checkpoints.at(-1);
    return { checkpoints, next: last ? `${last.epoch}.${last.size}` : null };
  }
  return server;
}

it('follows a log with many new checkpoints by fewer requests, which the server lets through', async () => {
  const { org } = await seal.organization(1);
  const file = join(folder, 'checkpoints');
  const server = serverOf(org);
  const context = { client: () => Promise.resolve(server), terminal: { result: () => undefined } };
  const run = () => watch([file], context as unknown as Parameters<typeof watch>[1], '');
  expect(await run()).toBe(0);
  for (let n = 0; n < 119; n += 1) {
    await writeEvent(dataSource, org);
    await seal.seal();
  }
  server.requests = 0;
  expect(await run()).toBe(0);
  expect(server.requests).toBeLessThanOrEqual(60);
  expect(readFile(file).at(-1)?.size).toBe(120);
  expect(readFileSync(file, 'utf8').split('\n\n— ').length).toBeGreaterThan(30);
  const check = seal.check(await seal.export(org), readFile(file));
  expect([check.findings, check.counts.unproven]).toEqual([[], 0]);
});
