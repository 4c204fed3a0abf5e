import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { adminProcess } from '../support/break-glass.js';
import { prepareDataDir } from '../support/cluster-template.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../support/database-proxy.js';
import { run } from '../support/entry-point.js';
import { freePort } from '../support/free-port.js';
import { isAlive, signal, withDescendants } from '../support/processes.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import { startServerProcess, type ServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

/**
 * The longest stop while the database is frozen, in milliseconds. It takes 4 to 7 seconds; a busy
 * machine needs more. Without the limits of the stop it took 28 seconds, or did not end.
 */
const LONGEST = 12_000;

describe('SIGTERM while the database is frozen', () => {
  let folder: string;
  let idp: DemoIdentityProvider;
  let origin: string;
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let server: ServerProcess;
  let frozen: readonly number[] = [];

  beforeAll(async () => {
    origin = `http://localhost:${await freePort()}`;
    const redirectUri = `${origin}/oauth/callback`;
    idp = await startDemoIdentityProvider({ ...TEST_CLIENT, redirectUri });
  });
  beforeEach(async () => {
    folder = await makeTemporaryDirectory();
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
  });
  afterEach(async () => {
    for (const pid of frozen) signal(pid, 'SIGKILL');
    frozen = [];
    server.signal('SIGKILL');
    await server.ended;
    await proxy.close();
    await database.drop();
    await removeDirectory(folder);
  });
  afterAll(async () => {
    await idp.close();
  });

  /** Starts the built service, and waits until it serves. */
  async function start(environment: Readonly<Record<string, string>>): Promise<void> {
    server = startServerProcess(
      'main.js',
      {
        SVC_BASE_URL: origin,
        SVC_LISTEN_ADDR: `[::]:${new URL(origin).port}`,
        SVC_LOG_FORMAT: 'json',
        ...providerEnvironment(idp.issuer),
        ...environment,
      },
      { cwd: folder },
    );
    await server.printed(environment['SVC_WORKERS'] ? /workers serve/ : /is served on port/);
  }

  /** Stops the service by SIGTERM. Returns its exit status, and the milliseconds of the stop. */
  async function stop(): Promise<{ status: number | null; took: number }> {
    const begun = performance.now();
    server.signal('SIGTERM');
    const status = await server.ended;
    return { status, took: performance.now() - begun };
  }

  /** Starts the service on its embedded PostgreSQL. */
  async function startEmbedded(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    await prepareDataDir(join(folder, 'data'));
    await start({ SVC_DATA_DIR: join(folder, 'data'), ...environment });
  }

  /** Freezes the processes of the embedded PostgreSQL, which are below the shell that runs it. */
  function freezeEmbedded(): void {
    frozen = postgresOf(server.pid);
    expect(frozen.length).toBeGreaterThan(5);
    for (const pid of frozen) signal(pid, 'SIGSTOP');
  }

  it('ends soon with status 0, and answers the open requests', async () => {
    await start({ SVC_DATABASE_URL: proxy.url });
    proxy.freeze();
    const ready = fetch(`${origin}/health/ready`);
    const list = fetch(`${origin}/v1/credentials/ssh/krl`);
    const { status, took } = await stop();
    expect([(await ready).status, (await list).status]).toEqual([503, 503]);
    expect({ status, output: server.output(), took }).toMatchObject({ status: 0 });
    expect(took).toBeLessThan(LONGEST);
  });

  it('ends with several workers soon with status 0', async () => {
    await start({ SVC_DATABASE_URL: proxy.url, SVC_WORKERS: '2' });
    proxy.freeze();
    const { status, took } = await stop();
    expect({ status, output: server.output(), took }).toMatchObject({ status: 0 });
    expect(took).toBeLessThan(LONGEST);
  });

  it.each(['1', '2'])(
    'leaves the embedded PostgreSQL of %s workers to its watchdog, which ends it',
    async (workers) => {
      await startEmbedded(workers === '1' ? {} : { SVC_WORKERS: workers });
      freezeEmbedded();
      const { status, took } = await stop();
      expect({ status, output: server.output(), took }).toMatchObject({ status: 0 });
      expect(took).toBeLessThan(LONGEST);
      await expect.poll(() => frozen.filter(isAlive), { timeout: 60_000 }).toEqual([]);
    },
  );
});

describe('a server that freezes after the last statement', () => {
  it('does not keep node dist/migrate.js from ending with status 0, nor node dist/admin.js', async () => {
    const folder = await makeTemporaryDirectory();
    const database = await createTestDatabase();
    const proxy = await startDatabaseProxy(database.url);
    proxy.keepOpen();
    const environment = { SVC_DATABASE_URL: proxy.url };
    const migrated = await run('migrate.js', [], { cwd: folder, environment });
    expect(migrated).toMatchObject({ status: 0, stderr: '' });
    expect(migrated.stdout).toContain('has every migration of this version');
    const listed = await adminProcess(['list-admins'], { url: proxy.url });
    expect(listed).toMatchObject({ status: 0, stderr: 'There is no admin.\n' });
    await proxy.close();
    await database.drop();
    await removeDirectory(folder);
  });
});

/** Returns the processes of PostgreSQL below a process of the service. */
function postgresOf(pid: number): number[] {
  return withDescendants(pid).filter(
    (child) => readFileSync(`/proc/${child}/comm`, 'utf8') === 'postgres\n',
  );
}
