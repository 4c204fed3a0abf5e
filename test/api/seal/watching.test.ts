import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
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

it('refuses an unsigned checkpoint also among those that it does not prove', async () => {
  const { org } = await seal.organization(1);
  const [file, key] = [join(folder, 'signed'), join(folder, 'seal.key')];
  writeFileSync(key, seal.verifier);
  const server = serverOf(org);
  const terminal = { result: vi.fn<(document: object, lines: readonly string[]) => void>() };
  const note = (await seal.checkpoints(org))[0]?.note ?? '';
  const unsigned = note.replace(/(?<=\ntime )\d/, '9');
  const pages = new Map([
    ['newest', [note]],
    ['page', [note, unsigned, ...Array.from({ length: 59 }, () => note)]],
  ]);
  const get = (path: string) => {
    const after = new URL(path, 'http://localhost').searchParams.get('after');
    if (after === null) return server.get(path);
    const notes = pages.get(after === 'newest' ? 'newest' : 'page') ?? [];
    return Promise.resolve({ checkpoints: notes.map((one) => ({ note: one })), next: null });
  };
  const context = { client: () => Promise.resolve({ get }), terminal };
  const run = () =>
    watch([file, '--key', key], context as unknown as Parameters<typeof watch>[1], '');
  expect(await run()).toBe(0);
  expect(await run()).toBe(1);
  const fault = 'the checkpoint of size 1 has no signature of the key';
  expect(terminal.result).toHaveBeenLastCalledWith(
    expect.objectContaining({ fault }),
    expect.anything(),
  );
});
