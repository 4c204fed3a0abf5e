import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDebianPostgres, type DebianPostgres } from '../support/debian-postgres.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { RecordingLog } from '../support/recording-log.js';
import { openMigrationConnection, openPool } from '#platform/database/connection.js';
import { warnOfLoss } from '#platform/database/durability.js';
import { addressOf } from '#platform/database/hosts/host-client.js';
import { NoFittingHost } from '#platform/database/hosts/host-search.js';
import { unreachable } from '#platform/database/open-database.js';
import { isDatabaseAway, isReadOnly, reasonOf } from '#platform/database/statements/faults.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { rows } from '../support/rows.js';

requires('postgresql', 'psql').describe('a database with several hosts', () => {
  const parts = new AsyncDisposableStack();
  let primary: DebianPostgres;
  let standby: DebianPostgres;
  let silent: Silent;
  let dead: number;
  beforeAll(async () => {
    primary = await startDebianPostgres();
    parts.defer(() => primary.stop());
    standby = await primary.startStandby();
    parts.defer(() => standby.stop());
    silent = await listenSilently();
    parts.defer(() => silent.close());
    dead = await freePort();
  });
  afterAll(() => parts.disposeAsync());

  const urlOf = (ports: readonly number[], target: string) =>
    `postgres://postgres@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/postgres${target}`;
  const open = (url: string, connections = 3) =>
    openPool(addressOf(url), new RecordingLog(), connections);
  const portOf = async (dataSource: DataSource) => {
    const [row] = await rows<{ port: number }>(dataSource, 'SELECT inet_server_port() AS port');
    return row?.port;
  };

  it.each(['read-write', 'primary'])(
    'reaches the one that takes writes, for target_session_attrs=%s',
    async (target) => {
      const url = urlOf([dead, standby.port, primary.port], `?target_session_attrs=${target}`);
      for (const openOne of [open, (text: string) => openMigration(text)]) {
        const dataSource = await openOne(url);
        expect(await portOf(dataSource)).toBe(primary.port);
        await dataSource.destroy();
      }
    },
  );
  const openMigration = (url: string) =>
    openMigrationConnection(addressOf(url), new RecordingLog());

  it('takes the first one that answers if it may be any, as libpq does', async () => {
    for (const target of ['', '?target_session_attrs=any']) {
      const dataSource = await open(urlOf([dead, standby.port, primary.port], target));
      expect(await portOf(dataSource)).toBe(standby.port);
      await dataSource.destroy();
    }
  });

  it('does not wait for a host that accepts and says nothing', async () => {
    const url = urlOf([silent.port, primary.port], '?target_session_attrs=read-write');
    const start = performance.now();
    const dataSource = await open(url);
    expect(performance.now() - start).toBeLessThan(4_500); // a connection has 5 s
    const asked = silent.connections();
    await Promise.all([1, 2, 3].map(() => rows(dataSource, 'SELECT pg_sleep(0.02)')));
    expect(silent.connections()).toBe(asked); // no later connection has tried the silent host again
    await dataSource.destroy();
  });

  it('is away, and says why of each host, if none takes writes', async () => {
    const url = urlOf([dead, standby.port], '?target_session_attrs=read-write');
    const fault: unknown = await open(url).catch((error: unknown) => error);
    expect(isDatabaseAway(fault)).toBe(true);
    expect(String(fault)).toMatch(
      new RegExp(`127.0.0.1:${dead}: .*ECONNREFUSED.*127.0.0.1:${standby.port}: is a standby`),
    );
  });

  it('leads to the page if none can be used at the start', () => {
    const page = /^SVC_DATABASE_URL: .*\(docs\/operations\/databases\.md\)$/;
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
    for (const fault of [new NoFittingHost('no host can be used: a:1: is a standby'), away]) {
      const problem = unreachable({ connectionString: urlOf([dead], '') }, fault);
      expect(reasonOf(problem)).toMatch(page);
    }
  });

  it('names a refused login and not the hosts that are away', async () => {
    const url = urlOf([dead, primary.port], '?target_session_attrs=read-write');
    const fault: unknown = await open(url.replace('postgres@', 'nobody_here@')).catch(
      (error: unknown) => error,
    );
    expect(isDatabaseAway(fault)).toBe(false);
    expect(String(fault)).toMatch(/nobody_here/);
  });

  it('knows the error of a standby that is asked about the write-ahead log', async () => {
    const client = new Client({ connectionString: standby.url('postgres', 'postgres') });
    await client.connect();
    const fault: unknown = await client
      .query('SELECT pg_current_wal_lsn()')
      .catch((e: unknown) => e);
    expect(fault).toMatchObject({ code: '55000' });
    expect([isReadOnly(fault), isDatabaseAway(fault)]).toEqual([true, true]);
    // This error has the same SQLSTATE, but another meaning.
    const other: unknown = await client.query("SELECT currval('x')").catch((e: unknown) => e);
    expect(isReadOnly(other)).toBe(false);
    await client.end();
  });

  it('with an asynchronous standby is named at the start', async () => {
    const dataSource = await openMigration(primary.url('postgres', 'postgres'));
    const log = new RecordingLog();
    await warnOfLoss(dataSource.manager, undefined, log);
    await warnOfLoss(dataSource.manager, 'asynchronous', log);
    await dataSource.destroy();
    expect(log.lines).toHaveLength(1);
    expect(log.lines[0]).toContain('synchronous_standby_names is empty');
  });

  it('leaves a server that was made read-only, and reaches the promoted one', async () => {
    const url = urlOf([primary.port, standby.port], '?target_session_attrs=read-write');
    const dataSource = await open(url);
    expect(await portOf(dataSource)).toBe(primary.port);
    await ask(primary, 'CREATE TABLE written (n int)');
    await ask(primary, 'ALTER SYSTEM SET default_transaction_read_only = on');
    await ask(primary, 'SELECT pg_reload_conf()');
    const write = async () => {
      const text = 'INSERT INTO written VALUES (1) RETURNING inet_server_port() AS port';
      try {
        return (await rows<{ port: number }>(dataSource, text))[0]?.port;
      } catch (error) {
        expect(isDatabaseAway(error)).toBe(true);
        return 'refused';
      }
    };
    await expect.poll(write).toBe('refused');
    await ask(standby, 'SELECT pg_promote()');
    await expect.poll(write, { timeout: 90_000 }).toBe(standby.port);
    await dataSource.destroy();
  });

  async function ask(server: DebianPostgres, text: string): Promise<void> {
    const client = new Client({ connectionString: server.url('postgres', 'postgres') });
    await client.connect();
    await client.query(text);
    await client.end();
  }
});

interface Silent {
  readonly port: number;
  connections(): number;
  close(): Promise<void>;
}

/** Starts a server that accepts connections and never answers, like a frozen host. */
async function listenSilently(): Promise<Silent> {
  const sockets: Socket[] = [];
  const server: Server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => sockets.length,
    close: async () => {
      sockets.forEach((socket) => socket.destroy());
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
