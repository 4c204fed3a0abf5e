import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { openDatabase } from '#platform/database/open-database.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startPgBouncer, type PgBouncer } from '../support/pgbouncer.js';
import { requires } from '../support/programs.js';
import { RecordingLog } from '../support/recording-log.js';
import { rows } from '../support/rows.js';
import { foundOrganization } from '../support/scim-organization.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';

const twenty = Array.from({ length: 20 }, (_, n) => n);

requires('pgbouncer').describe('PgBouncer in transaction mode', () => {
  const parts = new AsyncDisposableStack();
  let database: TestDatabase;
  let other: TestDatabase;
  let bouncer: PgBouncer;
  let app: TestApp;
  beforeAll(async () => {
    database = await createTestDatabase();
    parts.defer(() => database.drop());
    other = await createTestDatabase();
    parts.defer(() => other.drop());
    bouncer = await startPgBouncer(parts, inject('testServer'));
  });
  afterAll(() => parts.disposeAsync());

  /**
   * Opens the database through the pooler as at a start of the service. Returns the warnings about
   * the pooler.
   */
  async function warningsOfStart(direct = database.url): Promise<string[]> {
    const url = bouncer.url(database.name);
    const settings = { url, directUrl: direct, pooler: 'transaction' } as const;
    const log = new RecordingLog();
    const opened = await openDatabase({ ...database.config, ...settings }, 'test', log);
    await opened.close();
    return log.lines.filter((line) => line.includes('pooler'));
  }

  it('gets the settings of sessions by the role, after its connections are new', async () => {
    expect(await warningsOfStart()).toEqual([
      expect.stringMatching(
        /lack statement_timeout = 10s, lock_timeout = 5s, .*jit = off.*RECONNECT/,
      ),
    ]);
    await bouncer.command('RECONNECT');
    expect(await warningsOfStart()).toEqual([]);
  });

  it('is refused if the direct URL names another database', async () => {
    await expect(warningsOfStart(other.url)).rejects.toThrow(
      'SVC_DATABASE_DIRECT_URL: is another database than SVC_DATABASE_URL',
    );
  });

  it('serves SCIM, certificates and pages, and keeps nothing of a session', async () => {
    app = await startTestApp({
      database: { url: bouncer.url(database.name) },
      environment: { SVC_DATABASE_POOLER: 'transaction', SVC_DATABASE_DIRECT_URL: database.url },
    });
    parts.defer(() => app.close());
    const { scim, admin } = await foundOrganization(app, 'pooler.example');
    const made = await Promise.all(
      twenty.map((n) => scim('POST', '/Users', { userName: `p${n}@pooler.example` })),
    );
    expect(made.map(({ status }) => status)).toEqual(twenty.map(() => 201));
    const issued = await Promise.all(
      twenty.map(() =>
        admin.client.send('POST', '/v1/credentials/ssh', {
          body: { public_key: newPublicKeyLine() },
          address: newAddress(),
        }),
      ),
    );
    expect(issued.map(({ status }) => status)).toEqual(twenty.map(() => 200));
    const ended = await Promise.all(
      made.map(({ json }) => scim('DELETE', `/Users/${String(json.id)}`)),
    );
    expect(ended.map(({ status }) => status)).toEqual(twenty.map(() => 204));
    expect((await admin.client.get('/admin/audit')).status).toBe(200);
    expect(await rows(app.dataSource, 'SELECT name FROM pg_prepared_statements')).toEqual([]);
    // `svc.unconfirmed` lets a connection write on an unconfirmed server. A pooled connection must
    // not have it, because other clients get the connection too.
    expect(
      await rows(app.dataSource, "SELECT current_setting('svc.unconfirmed', true) AS value"),
    ).toEqual([{ value: null }]);
  });
});
