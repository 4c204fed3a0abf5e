import 'reflect-metadata';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DataSource, EntityManager } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#platform/clock/clock.js';
import { CONFIG } from '#platform/config/config.js';
import { TIMEOUTS, openPool } from '#platform/database/connection.js';
import { DatabaseModule } from '#platform/database/database.module.js';
import { ConfirmationGate } from '#platform/database/identity/confirmation-gate.js';
import { isDatabaseAway, reasonOf } from '#platform/database/statements/faults.js';
import { openDatabase } from '#platform/database/open-database.js';
import { sql } from '#platform/database/statements/sql.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startDatabaseProxy } from '../support/database-proxy.js';
import { RecordingLog } from '../support/recording-log.js';
import { TestClock } from '../support/test-clock.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

describe('the connection to the database', () => {
  let database: TestDatabase;
  let pool: DataSource;
  const log = new RecordingLog();

  beforeAll(async () => {
    database = await createTestDatabase();
    const timeouts = { ...TIMEOUTS, connectionTimeoutMillis: 1000, query_timeout: 1000 };
    pool = await openPool({ connectionString: database.url }, log, 1, { timeouts });
    await pool.query('CREATE TABLE notes (note text)');
  });
  afterAll(async () => {
    await pool.destroy();
    await database.drop();
  });

  const notes = () => pool.query('SELECT note FROM notes');

  it('limits every statement, wait and idle transaction on the server too', async () => {
    const open = await openDatabase(database.config, 'test', log);
    const [limits] = await open.dataSource.query(
      `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
              current_setting('idle_in_transaction_session_timeout') AS idle`,
    );
    await open.close();
    expect(limits).toEqual({ statement: '10s', lock: '5s', idle: '15s' });
    expect(TIMEOUTS.query_timeout).toBeGreaterThan(TIMEOUTS.statement_timeout);
  });

  it('commits durably although synchronous_commit is off, and leaves a stronger setting', async () => {
    const settingOf = async (configured: string) => {
      const options = encodeURIComponent(`-c synchronous_commit=${configured}`);
      const address = { connectionString: `${database.url}&options=${options}` };
      const opened = await openPool(address, log, 1);
      const [row] = await opened.query("SELECT current_setting('synchronous_commit') AS value");
      await opened.destroy();
      return row.value as string;
    };
    expect(await settingOf('off')).toBe('on');
    expect(await settingOf('remote_apply')).toBe('remote_apply');
  });

  it('reports an exhausted pool to the caller within the time limit', async () => {
    await pool.transaction(async (tx) => {
      await sql(tx)`SELECT 1`;
      const failure = await notes().catch((error: unknown) => error);
      expect(reasonOf(failure)).toBe('timeout exceeded when trying to connect');
      expect(isDatabaseAway(failure)).toBe(true);
    });
  });

  it('throws the original error when it ends within a transaction, and recovers', async () => {
    const failures: unknown[] = [];
    const transaction = pool.transaction(async (tx) => {
      await sql(tx)`INSERT INTO notes VALUES ('lost')`;
      process.kill(await backendOf(tx), 'SIGTERM');
      await sql(tx)`SELECT pg_sleep(0.2)`.catch((error: unknown) => {
        failures.push(error);
        throw error;
      });
    });
    await expect(transaction).rejects.toSatisfy((error) => error === failures[0]);
    expect(failures).toHaveLength(1);
    expect(isDatabaseAway(failures[0])).toBe(true);
    expect(await notes()).toEqual([]);
  });

  it('never commits the work that a frozen transaction gave up, together with later work', async () => {
    let frozen = Number.NaN;
    const transaction = pool.transaction(async (tx) => {
      await sql(tx)`INSERT INTO notes VALUES ('given up')`;
      frozen = await backendOf(tx);
      process.kill(frozen, 'SIGSTOP');
      await sql(tx)`SELECT 1`;
    });
    await expect(transaction).rejects.toSatisfy(isDatabaseAway);
    process.kill(frozen, 'SIGCONT');
    await pool.transaction(async (tx) => {
      expect(await backendOf(tx)).not.toBe(frozen);
      await sql(tx)`INSERT INTO notes VALUES ('kept')`;
    });
    expect(await notes()).toEqual([{ note: 'kept' }]);
  });

  it('is refused at once although the server vanishes at that moment', async () => {
    const proxy = await startDatabaseProxy(database.url);
    const gate = new ConfirmationGate();
    gate.check = () => {
      proxy.freeze();
      return Promise.reject(new Error('not confirmed'));
    };
    const opening = openPool({ connectionString: proxy.url }, log, 1, { gate });
    await expect(opening).rejects.toThrow('not confirmed');
    await proxy.close();
  });

  it('waits at the start until the database is reachable', async () => {
    const config = { ...database.config, url: 'postgres://svc@127.0.0.1:1/none' };
    const patience = new RecordingLog();
    const time = new TestClock();
    const monotonic = vi.spyOn(systemClock, 'monotonic').mockImplementation(() => time.monotonic());
    const sleep = vi.spyOn(systemClock, 'sleep').mockImplementation((milliseconds) => {
      time.advance(milliseconds);
      return Promise.resolve();
    });
    try {
      const failure = await openDatabase(config, 'test', patience).catch(reasonOf);
      expect(failure).toMatch(/^SVC_DATABASE_URL: .*ECONNREFUSED/);
    } finally {
      monotonic.mockRestore();
      sleep.mockRestore();
    }
    expect(patience.lines).toHaveLength(30); // one line per second for 30 seconds of the test clock
    expect(patience.lines[0]).toMatch(/^warn The database cannot be reached yet \(.*ECONNREFUSED/);
  });

  it('does not retry an error that cannot heal', async () => {
    const impatient = new RecordingLog();
    const config = { ...database.config, url: database.url.replace(database.name, 'no_such') };
    await expect(openDatabase(config, 'test', impatient)).rejects.toThrow(
      /"no_such" does not exist/,
    );
    expect(impatient.lines).toEqual([]);
  });
});

describe('DatabaseModule', () => {
  it('provides the migrated database, on an embedded server that ends with the application', async () => {
    const dataDir = await makeTemporaryDirectory();
    const config = {
      database: {
        url: undefined,
        dataDir,
        maxConnections: 120,
        failover: undefined,
        pooler: undefined,
        directUrl: undefined,
      },
    };
    @Module({ providers: [{ provide: CONFIG, useValue: config }], exports: [CONFIG] })
    class Configuration {}
    const application = await Test.createTestingModule({
      imports: [{ module: Configuration, global: true }, DatabaseModule.forRoot('test')],
    }).compile();
    await application.init();

    const manager = application.get(EntityManager);
    expect(application.get(DataSource).manager).toBe(manager);
    expect(await sql(manager)`SELECT composition FROM deployment`).toEqual([
      { composition: 'test' },
    ]);
    expect(await manager.query('SHOW max_connections')).toEqual([{ max_connections: '130' }]);
    const pidFile = join(dataDir, 'postgres', 'postmaster.pid');
    const postmaster = Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
    await application.close();

    expect(existsSync(pidFile)).toBe(false);
    expect(() => process.kill(postmaster, 0)).toThrow('ESRCH');
    await removeDirectory(dataDir);
  });
});

async function backendOf(manager: EntityManager): Promise<number> {
  const [row] = await sql<{ pid: number }>(manager)`SELECT pg_backend_pid() AS pid`;
  return row?.pid ?? Number.NaN;
}
