import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { BoundedDataSource } from '#platform/database/bounded-data-source.js';
import { openPool } from '#platform/database/connection.js';
import { addressOf } from '#platform/database/hosts/host-client.js';
import { becomesSilent } from '#platform/database/hosts/silence-watch.js';
import { RequestsInFlight } from '#platform/http/server/requests-in-flight.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startDatabaseProxy, type DatabaseProxy } from '../support/database-proxy.js';
import { RecordingLog } from '../support/recording-log.js';

describe('while the database does not answer', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
  });
  afterAll(async () => {
    await proxy.close();
    await database.drop();
  });

  it('the stop of the service does not wait for it, and answers the open request by 503', async () => {
    const app: TestApp = await startTestApp({ database: { ...database, url: proxy.url } });
    const { client } = await app.enrolled('ada@acme.example');
    proxy.freeze();
    const open = client.get('/v1/keys');
    await expect.poll(() => app.nest.get(RequestsInFlight).count).toBe(1);
    const begun = performance.now();
    await app.close();
    // It takes 4 seconds; a busy machine needs more. Without the watch it takes 12 and more.
    expect(performance.now() - begun).toBeLessThan(10_000);
    expect((await open).status).toBe(503);
    expect(app.log.join('')).not.toContain('does not wait any longer');
  });
});

describe('a server that freezes after the last statement', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;

  beforeAll(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    proxy.keepOpen();
  });
  afterAll(async () => {
    await proxy.close();
    await database.drop();
  });

  it('keeps a pool open only until the time limit', async () => {
    const pool = await openPool({ connectionString: proxy.url }, new RecordingLog(), 2);
    if (!(pool instanceof BoundedDataSource)) throw new TypeError('the pool has no time limit');
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'PipeWrap');
    const before = sockets().length;
    await pool.destroy(100);
    await expect.poll(() => sockets().length).toBe(before - 1);
  });
});

describe('a pool of several hosts that were away for some time', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let pool: BoundedDataSource;

  beforeEach(async () => {
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    const twice = (_parameter: string, name: string, value: string) => `${name}=${value},${value}`;
    const url = proxy.url.replaceAll(/(host|port)=([^&]+)/g, twice);
    const opened = await openPool(addressOf(url), new RecordingLog(), 2);
    if (!(opened instanceof BoundedDataSource)) throw new TypeError('the pool has no time limit');
    pool = opened;
    await proxy.down();
    for (let attempt = 0; attempt < 3; attempt += 1)
      await pool.query('SELECT 1').catch(() => undefined);
  });
  afterEach(async () => {
    await proxy.close();
    await database.drop();
  });

  it('closes at once, because it waits for no connection that was never made', async () => {
    await proxy.up();
    await pool.query('SELECT 1');
    const begun = performance.now();
    await pool.destroy();
    expect(performance.now() - begun).toBeLessThan(4_000);
  });

  it('makes no connection to the host that it finds only after it was cut off', async () => {
    await proxy.up();
    const late = pool.query('SELECT 1');
    pool.cut();
    await expect(late).rejects.toThrow('Connection terminated unexpectedly');
    await pool.destroy();
  });
});

describe('a server is not taken for silent', () => {
  let database: TestDatabase;
  let proxy: DatabaseProxy;
  let pool: BoundedDataSource;
  const log = new RecordingLog();
  let stop: AbortController;

  beforeEach(async () => {
    stop = new AbortController();
    database = await createTestDatabase();
    proxy = await startDatabaseProxy(database.url);
    const opened = await openPool({ connectionString: proxy.url }, log, 2);
    if (!(opened instanceof BoundedDataSource)) throw new TypeError('the pool has no time limit');
    pool = opened;
  });
  afterEach(async () => {
    stop.abort();
    await pool.destroy();
    await proxy.close();
    await database.drop();
  });
  const watch = () =>
    becomesSilent({ pool, watchReceipts: () => pool.watchReceipts() }, stop.signal, log);

  it('while this process stands still', async () => {
    const { makeSocket } = pool;
    const asked = vi.spyOn(pool, 'makeSocket').mockImplementationOnce(() => {
      setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_500));
      return makeSocket();
    });
    const pending = watch();
    await expect.poll(() => asked.mock.calls.length, { timeout: 90_000 }).toBe(2);
    stop.abort();
    expect(await pending).toBe(false);
  });

  it('while it answers statements, although it begins no session', async () => {
    await pool.query('SELECT 1');
    proxy.holdNew();
    const busy = new AbortController();
    const statements = (async () => {
      while (!busy.signal.aborted) await pool.query('SELECT pg_sleep(0.05)');
    })();
    const asked = vi.spyOn(pool, 'makeSocket');
    const pending = watch();
    await expect.poll(() => asked.mock.calls.length, { timeout: 90_000 }).toBe(2);
    busy.abort();
    await statements;
    expect(await pending).toBe(true);
  });
});
