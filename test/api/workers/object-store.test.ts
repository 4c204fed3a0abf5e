import '../../support/full-scale-only.js';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CreateBucketCommand, GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import type { DataSource } from 'typeorm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { adminProcess } from '../../support/break-glass.js';
import { startConfigStore, type ConfigStore } from '../../support/config-store.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { writeEvent } from '../../support/feed-reader.js';
import { freePort } from '../../support/free-port.js';
import { MOTO_CREDENTIALS } from '../../support/moto.js';
import { requires } from '../../support/programs.js';
import { providerEnvironment, TEST_CLIENT } from '../../support/provider-environment.js';
import { count, rows } from '../../support/rows.js';
import { connectTo, TestSeal } from '../../support/seal.js';
import { startServerProcess, type ServerProcess } from '../../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const CHECKPOINTS = 'checkpoints-of-workers';
const ARCHIVES = 'archives-of-workers';
const FOLDER = `PUT /${CHECKPOINTS}/audit-checkpoints/`;

/**
 * Two workers seal the audit log into an object store. A worker seals at its start and then once a
 * minute. So a test ends a worker, and the worker that replaces it seals at once.
 */
requires('moto').describe('main.js --workers 2 with an object store', () => {
  let store: ConfigStore;
  let client: S3Client;
  let database: TestDatabase;
  let dataSource: DataSource;
  let seal: TestSeal;
  let folder: string;
  let idp: DemoIdentityProvider;
  let server: ServerProcess;
  const org = randomUUID();

  beforeAll(async () => {
    store = await startConfigStore();
    await store.put({});
    client = new S3Client({ endpoint: store.proxy.endpoint, forcePathStyle: true });
    const CreateBucketConfiguration = { LocationConstraint: MOTO_CREDENTIALS.AWS_REGION };
    await client.send(
      new CreateBucketCommand({
        Bucket: CHECKPOINTS,
        ObjectLockEnabledForBucket: true,
        CreateBucketConfiguration,
      }),
    );
    await client.send(new CreateBucketCommand({ Bucket: ARCHIVES, CreateBucketConfiguration }));
    database = await createTestDatabase();
    dataSource = await connectTo(database);
    seal = new TestSeal(dataSource);
    folder = await makeTemporaryDirectory();
    const port = await freePort();
    const redirectUri = `http://localhost:${port}/oauth/callback`;
    idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
    server = startServerProcess(
      'main.js',
      {
        ...store.environment,
        ...providerEnvironment(idp.issuer),
        SVC_BASE_URL: `http://localhost:${port}`,
        SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
        SVC_DATABASE_URL: database.url,
        SVC_DATA_DIR: join(folder, 'data'),
        SVC_AUDIT_SEAL_BUCKET: CHECKPOINTS,
        SVC_CLEANUP_INTERVAL: '0', // no clean-up, which would delete the month that is archived
      },
      { cwd: folder, entryArguments: ['--workers', '2'] },
    );
    await server.printed(/2 workers serve/);
  });
  afterAll(async () => {
    server.signal('SIGKILL');
    await server.ended;
    await idp.close();
    await dataSource.destroy();
    await database.drop();
    client.destroy();
    await store.close();
    await removeDirectory(folder);
  });

  const timesServed = () => server.output().split('is served on port').length - 1;
  /**
   * Writes an event and ends a worker by a signal. The new worker in its place then seals the
   * event.
   */
  const sealedByNewWorker = async (signal: NodeJS.Signals) => {
    await writeEvent(dataSource, org);
    await seal.settled();
    await roundOfNewWorkers([workersOf(server.pid)[0] ?? 0], signal);
  };
  const roundOfNewWorkers = async (pids: readonly number[], signal: NodeJS.Signals) => {
    await rows(dataSource, "UPDATE audit_seal SET round_at = 'epoch'");
    const served = timesServed();
    for (const pid of pids) process.kill(pid, signal);
    while (timesServed() < served + pids.length) await delay(20);
  };
  /**
   * Waits until a checkpoint covers `size` leaves of the organization's tree, and all checkpoints
   * are in the store.
   */
  const published = async (size: number) => {
    const isDone = async () =>
      (await count(dataSource, 'audit_checkpoints WHERE tree = $1 AND size >= $2', [org, size])) ===
        1 && (await count(dataSource, 'audit_checkpoints WHERE published_at IS NULL')) === 0;
    while (!(await isDone())) await delay(20);
  };
  /**
   * Returns the writes of checkpoints that the store has received, with the name and the body of
   * each object.
   */
  const writes = () =>
    store.proxy.seen
      .filter(({ line }) => line.startsWith(FOLDER))
      .map(({ line, body }) => ({ name: line.slice(FOLDER.length), body }));
  const stored = async (Bucket: string, Key: string) => {
    const { Body: body } = await client.send(new GetObjectCommand({ Bucket, Key }));
    return (await body?.transformToString()) ?? '';
  };
  /** Checks that the store has exactly the checkpoints of the database, each with the same text. */
  const expectAllStored = async () => {
    const kept = await rows<{ name: string; note: string }>(
      dataSource,
      `SELECT tree || '/' || epoch || '/' || lpad(size::text, 15, '0') AS name, note
       FROM audit_checkpoints`,
    );
    for (const { name, note } of kept)
      expect(await stored(CHECKPOINTS, `audit-checkpoints/${name}`)).toBe(note);
    expect(new Set(writes().map(({ name }) => name))).toEqual(new Set(kept.map((one) => one.name)));
  };

  it('writes each checkpoint once, those of a tree in the order of their sizes', async () => {
    for (let size = 1; size <= 4; size += 1) {
      await sealedByNewWorker('SIGTERM');
      await published(size);
    }
    const names = writes().map(({ name }) => name);
    expect(names.filter((name) => name.startsWith(org))).toHaveLength(4);
    expect(new Set(names).size).toBe(names.length);
    for (const ofTree of Map.groupBy(names, (name) => name.split('/')[0]).values())
      expect(ofTree).toEqual(ofTree.toSorted());
    await expectAllStored();
  });

  it('leaves the checkpoint of a killed worker to another one, which writes the same', async () => {
    const before = writes().length;
    store.proxy.fault = 'hang';
    await sealedByNewWorker('SIGTERM');
    while (writes().length === before) await delay(20);
    // Another worker seals the same checkpoint while the first one waits for the store.
    await roundOfNewWorkers(workersOf(server.pid).slice(0, 1), 'SIGKILL');
    await roundOfNewWorkers(workersOf(server.pid), 'SIGKILL');
    store.proxy.fault = 'none';
    await roundOfNewWorkers(workersOf(server.pid), 'SIGKILL');
    await published(5);

    const again = writes().slice(before);
    expect(again.length).toBeGreaterThan(1);
    for (const same of Map.groupBy(again, ({ name }) => name).values())
      expect(new Set(same.map(({ body }) => body)).size).toBe(1);
    await expectAllStored();
  });

  it('archives a month while a worker seals', async () => {
    await rows(
      dataSource,
      `INSERT INTO audit_events (id, type, class, created_at)
       SELECT gen_random_uuid(), 'type ' || n, 'oauth', '2026-01-01 00:00:00+00'
       FROM generate_series(1, 1200) n`,
    );
    const key = 'oauth/2026-01.ndjson';
    const words = ['archive', '--class', 'oauth', '--month', '2026-01', '--to'];
    const [{ status, stdout, stderr }] = await Promise.all([
      adminProcess([...words, `s3://${ARCHIVES}/${key}`], {
        url: database.url,
        environment: store.environment,
      }),
      sealedByNewWorker('SIGTERM'),
    ]);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('1200 events');
    expect((await stored(ARCHIVES, key)).trim().split('\n')).toHaveLength(1200);
    expect(JSON.parse(await stored(ARCHIVES, `${key}.manifest.json`))).toMatchObject({
      rows: 1200,
    });
    await published(6);
    await expectAllStored();
  });
});

/** Returns the process ids of the workers of a server, from `/proc`. */
function workersOf(primary: number): number[] {
  const children = readFileSync(`/proc/${primary}/task/${primary}/children`, 'utf8');
  return children
    .trim()
    .split(' ')
    .map(Number)
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('main.js'));
}
