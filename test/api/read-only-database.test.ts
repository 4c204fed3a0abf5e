import { Module } from '@nestjs/common';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { startDebianPostgres, type DebianPostgres } from '../support/debian-postgres.js';
import { postForm } from '../support/oauth-flow.js';
import { requires } from '../support/programs.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { RecordingLog } from '../support/recording-log.js';
import { rows } from '../support/rows.js';
import { AnotherServer } from '#domain/admin/database-failover/replicas.repository.js';
import { startProblem } from '#platform/database/hosts/refusals.js';
import { systemClock } from '#platform/clock/clock.js';
import { openDatabase } from '#platform/database/open-database.js';
import { reasonOf } from '#platform/database/statements/faults.js';

/** Terminates every connection of the service, and waits up to 5 s for the end of each. */
const END_SESSIONS =
  "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'svc'";

requires('postgresql', 'psql').describe('a PostgreSQL that is made read-only', () => {
  const parts = new AsyncDisposableStack();
  let postgres: DebianPostgres;
  let app: TestApp;
  let ada: EnrolledUser;
  beforeAll(async () => {
    postgres = await startDebianPostgres();
    parts.defer(() => postgres.stop());
    await operate('CREATE ROLE svc LOGIN', 'CREATE DATABASE svc OWNER svc');
    app = await startTestApp({ database: { url: postgres.url('svc', 'svc') } });
    parts.defer(() => app.close());
    ada = await app.enrolled('ada@acme.example');
  });
  afterAll(() => parts.disposeAsync());

  async function operate(...statements: string[]): Promise<void> {
    const client = new Client({ connectionString: postgres.url('postgres', 'postgres') });
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  }
  const backends = async () => {
    const text =
      "SELECT pid FROM pg_stat_activity WHERE usename = 'svc' AND backend_type = 'client backend'";
    const found = await rows<{ pid: number }>(app.dataSource, text);
    return new Set(found.map(({ pid }) => pid));
  };
  const issue = () => ada.client.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });

  it('gives 503 with a time to return, is not ready, and serves again when it takes writes', async () => {
    expect((await issue()).status).toBe(200);
    await operate('ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()');
    const before = await backends();
    await vi.waitFor(
      async () => expect((await app.client().get('/health/ready')).status).toBe(503),
      90_000,
    );
    const ready = await app.client().get('/health/ready');
    expect(ready.json).toEqual({ status: 'not_ready', reason: 'database' });
    const refused = await issue();
    expect([refused.status, refused.json.code]).toEqual([503, 'unavailable']);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(refused.text).not.toMatch(/read-only|25006|sql/i);
    const token = await postForm(app, '/oauth/device', { client_id: 'svc-cli' });
    expect([token.status, token.json.error]).toEqual([503, 'temporarily_unavailable']);
    const isGone = async () => {
      const left = await backends();
      return [...before].some((pid) => !left.has(pid));
    };
    await expect.poll(isGone).toBe(true);
    // The service has tried to connect several times, but has logged the reason once.
    await expect
      .poll(() => app.log.filter((line) => line.includes('PostgreSQL cannot be used now')))
      .toHaveLength(1);

    await operate(
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    );
    await vi.waitFor(
      async () => expect((await app.client().get('/health/ready')).status).toBe(200),
      90_000,
    );
    expect((await issue()).status).toBe(200);
  });

  it.each([
    ['its role is locked', ['ALTER ROLE svc NOLOGIN'], ['ALTER ROLE svc LOGIN']],
    [
      'its database has another name',
      [
        'ALTER DATABASE svc ALLOW_CONNECTIONS false',
        END_SESSIONS,
        'ALTER DATABASE svc RENAME TO away',
        'ALTER DATABASE away ALLOW_CONNECTIONS true',
      ],
      ['ALTER DATABASE away RENAME TO svc'],
    ],
    [
      'its role may not connect',
      ['REVOKE CONNECT ON DATABASE svc FROM svc, PUBLIC'],
      ['GRANT CONNECT ON DATABASE svc TO svc'],
    ],
    [
      'its database accepts no connections',
      ['ALTER DATABASE svc ALLOW_CONNECTIONS false'],
      ['ALTER DATABASE svc ALLOW_CONNECTIONS true'],
    ],
  ])('gives 503 while %s, and serves again when that is corrected', async (_, close, open) => {
    const begun = app.log.length;
    try {
      await operate(...close, END_SESSIONS);
      const refused = await issue();
      expect([refused.status, refused.json.code]).toEqual([503, 'unavailable']);
      expect(refused.headers.get('retry-after')).toBe('1');
      expect(refused.text).not.toMatch(/role|database "|permission/);
      const token = await postForm(app, '/oauth/device', { client_id: 'svc-cli' });
      expect([token.status, token.json.error]).toEqual([503, 'temporarily_unavailable']);
      const fault = await startOn(postgres.url('svc', 'svc'));
      expect(fault).toMatch(
        /^SVC_DATABASE_URL: the database cannot be reached: .*databases\.md\)$/,
      );
      expect(app.log.slice(begun).join('')).not.toContain('is not confirmed yet');
    } finally {
      await operate(...open);
    }
    await vi.waitFor(async () => expect((await issue()).status).toBe(200), { timeout: 90_000 });
  });

  const configOf = (url: string) => ({
    url,
    dataDir: '',
    maxConnections: 2,
    failover: undefined,
    pooler: undefined,
    directUrl: undefined,
  });
  /** Opens a database as at a start. Returns the reason of the failure, which must come at once. */
  async function startOn(url: string): Promise<string> {
    const log = new RecordingLog();
    const fault: unknown = await openDatabase(configOf(url), 'test', log).catch(reasonOf);
    expect(log.lines.join()).not.toContain('trying again');
    return fault as string;
  }

  it('is awaited by a start, which names the variable and the page if it stays so', async () => {
    await operate('ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()');
    const config = configOf(postgres.url('svc', 'svc'));
    const log = new RecordingLog();
    const waits = () =>
      vi.waitFor(() => expect(log.lines.join()).toContain('takes no writes yet'), 30_000);
    const time = vi.spyOn(systemClock, 'monotonic');
    try {
      const failing = openDatabase(config, 'test', log).catch(reasonOf);
      await waits();
      time.mockReturnValue(performance.now() + 60_000);
      expect(await failing).toMatch(
        /^SVC_DATABASE_URL: the database takes no writes: .*target_session_attrs=read-write \(docs.*databases\.md\)$/,
      );
    } finally {
      time.mockRestore();
    }
    log.lines.length = 0;
    const opening = openDatabase(config, 'test', log);
    await waits();
    await operate(
      'SET default_transaction_read_only = off',
      'ALTER SYSTEM RESET default_transaction_read_only',
      'SELECT pg_reload_conf()',
    );
    await (await opening).close();
  });

  it.each(['onModuleInit', 'onApplicationBootstrap'])(
    'is named if it becomes so during the start, in %s',
    async (step) => {
      const name = step.toLowerCase();
      await operate(`CREATE DATABASE ${name} OWNER svc`);
      @Module({})
      class Part {
        constructor(private readonly dataSource: DataSource) {
          Object.assign(this, { [step]: () => this.write() });
        }

        private async write(): Promise<void> {
          await this.dataSource.transaction(async (tx) => {
            await tx.query('SET TRANSACTION READ ONLY');
            await tx.query('DELETE FROM audit_events');
          });
        }
      }
      const fault = await startTestApp({
        database: { url: postgres.url('svc', name) },
        modules: [Part],
      }).catch(reasonOf);
      expect(fault).toMatch(
        /^SVC_DATABASE_URL: the database takes no writes: .*target_session_attrs=read-write \(docs.*databases\.md\)$/,
      );
    },
  );

  it('is named if it is a standby that the start reaches in a migration or in the confirmation', () => {
    const readOnly = Object.assign(new Error('cannot execute INSERT'), { code: '25006' });
    const migration = new Error('Migration 1.sql failed', { cause: readOnly });
    const another = new AnotherServer('another PostgreSQL answers now');
    for (const fault of [readOnly, migration, another]) {
      const problem = startProblem(fault);
      expect(reasonOf(problem)).toMatch(/^SVC_DATABASE_URL: .*databases\.md\)$/);
      expect(startProblem(problem)).toBe(problem);
    }
  });
});
