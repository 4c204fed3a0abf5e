import { Client } from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { startDebianPostgres, type DebianPostgres } from '../support/debian-postgres.js';
import { requires } from '../support/programs.js';
import { addApplication } from '../support/applications.js';
import { cliToken } from '../support/cli-token.js';
import { postForm } from '../support/oauth-flow.js';
import { orgApi } from '../support/org-api.js';
import { rows } from '../support/rows.js';
import { foundOrganization } from '../support/scim-organization.js';
import { withQuery } from '../support/scim-requests.js';
import { newPublicKeyLine } from '../support/ssh-public-keys.js';
import { RecordingLog } from '../support/recording-log.js';
import {
  openConfirmationConnection,
  openMigrationConnection,
} from '#platform/database/connection.js';
import { openDatabase } from '#platform/database/open-database.js';

const REVOKED = 1000;
/**
 * The estimated cost from which PostgreSQL compiles a statement: the default of `jit_above_cost`.
 */
const COMPILED_FROM = 100_000;

requires('postgresql', 'psql').describe('a PostgreSQL that compiles statements', () => {
  const parts = new AsyncDisposableStack();
  let postgres: DebianPostgres;
  let app: TestApp;
  beforeAll(async () => {
    postgres = await startDebianPostgres();
    parts.defer(() => postgres.stop());
    await ask('postgres', 'postgres', 'CREATE ROLE svc LOGIN');
    await ask('postgres', 'postgres', 'CREATE DATABASE svc OWNER svc');
    if (!(await compiles())) throw new Error('this PostgreSQL compiles no statements');
    app = await startTestApp({ database: { url: postgres.url('svc', 'svc') } });
    parts.defer(() => app.close());
  });
  afterAll(() => parts.disposeAsync());

  /** Runs a statement on a new connection, which has only the settings of its role and database. */
  async function ask(role: string, database: string, text: string): Promise<unknown[]> {
    const client = new Client({ connectionString: postgres.url(role, database) });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text)).rows;
    } finally {
      await client.end();
    }
  }
  const compiles = async () => {
    const [row] = await ask('svc', 'svc', 'SELECT pg_jit_available() AS on');
    return (row as { on: boolean }).on;
  };

  it('compiles none of this service, whichever connection a pooler hands out', async () => {
    expect(await compiles()).toBe(false);
    expect(await rows(app.dataSource, 'SHOW jit')).toEqual([{ jit: 'off' }]);
    const address = { connectionString: postgres.url('postgres', 'postgres') };
    for (const open of [openConfirmationConnection, openMigrationConnection]) {
      const opened = await open(address, new RecordingLog());
      expect(await rows(opened, 'SHOW jit')).toEqual([{ jit: 'off' }]);
      await opened.destroy();
    }
    // The same role keeps its setting in another database.
    expect(await ask('svc', 'postgres', 'SHOW jit')).toEqual([{ jit: 'on' }]);
  });

  it('is named at the start if its connections compile all the same', async () => {
    await ask('postgres', 'postgres', 'ALTER ROLE svc IN DATABASE svc RESET jit');
    // The connection URL turns `jit` on, as an old connection of a pooler can still have it on.
    const url = `${postgres.url('svc', 'svc')}?options=-c%20jit%3Don`;
    const log = new RecordingLog();
    const opened = await openDatabase(
      {
        url,
        dataDir: '',
        maxConnections: 5,
        failover: undefined,
        pooler: undefined,
        directUrl: undefined,
      },
      'test',
      log,
    );
    await opened.close();
    expect(log.lines.filter((line) => line.includes('jit = on'))).toHaveLength(1);
    expect(await compiles()).toBe(false);
  });

  it('would not compile the revocation list either, of 1,000 certificates that were never analyzed', async () => {
    await rows(
      app.dataSource,
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint,
                                     valid_after, valid_before, revoked_at, revoke_reason, revoked_by)
       SELECT n, gen_random_uuid(), gen_random_uuid(), 'ada', '{ada}', 'ssh-ed25519 AAAA', a.fingerprint,
              now(), now() + interval '8 hours', now(), 'test', 'scim'
       FROM generate_series(1, ${REVOKED}) n, ssh_authorities a`,
    );
    const sent = await sentDuring(async () => {
      expect((await app.client().get('/v1/credentials/ssh/krl')).status).toBe(200);
    });
    const reads = sent.filter(({ text }) => text.includes('ssh_certificates'));
    expect(reads.length).toBeGreaterThan(0);
    for (const statement of reads) expect(await costOf(statement)).toBeLessThan(COMPILED_FROM / 10);
  });

  it('would not compile a sign-in, an issued certificate, or a look-up of SCIM and of an admin', async () => {
    const sent = await sentDuring(async () => {
      const { scim, admin } = await foundOrganization(app, 'compiled.example');
      const filter = 'userName eq "ada@compiled.example"';
      await scim('GET', withQuery('/Users', { filter }));
      await scim('GET', withQuery('/Groups', { filter: 'displayName eq "Hot"' }));
      await orgApi(admin.client, 'GET', '/members?limit=1');
      await orgApi(admin.client, 'GET', '/audit-events?limit=1');
      await admin.client.get('/v1/account/credentials?limit=20');
      const { status } = await admin.client.post('/v1/credentials/ssh', {
        public_key: newPublicKeyLine(),
      });
      expect(status).toBe(200);
    });
    expect(sent.some(({ text }) => text.includes('INSERT INTO ssh_certificates'))).toBe(true);
    expect(await compiledOf(sent)).toEqual([]);
  });

  it('would not compile the FIDO2 grant, userinfo, introspection, a client token, or a token for AWS', async () => {
    const sent = await sentDuring(async () => {
      const { admin } = await foundOrganization(app, 'tokens.example');
      const aws = await admin.client.post('/v1/credentials/aws/token', {});
      const bearer = await cliToken(app, admin.key, { scope: 'openid', bound: false });
      const headers = { authorization: `Bearer ${bearer.token}` };
      const userinfo = await app.client().get('/oauth/userinfo', { headers });
      const metadata = {
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
      };
      const owner = 'admin@tokens.example';
      const { clientId, clientSecret } = await addApplication(app, metadata, { owner });
      const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
      const as = { authorization: `Basic ${basic}` };
      const form = { grant_type: 'client_credentials' };
      const client = await postForm(app, '/oauth/token', form, as);
      const token = client.json.access_token as string;
      const state = await postForm(app, '/oauth/introspect', { token }, as);
      expect([aws, userinfo, client, state].map(({ status }) => status)).toEqual(
        Array.from({ length: 4 }, () => 200),
      );
      expect(state.json.active).toBe(true);
    });
    expect(await compiledOf(sent)).toEqual([]);
  });

  interface Sent {
    readonly text: string;
    readonly values: readonly unknown[];
  }

  /** Returns the statements, with their values, that the driver sends during an action. */
  async function sentDuring(act: () => Promise<void>): Promise<Sent[]> {
    const query = vi.spyOn(Client.prototype, 'query');
    try {
      await act();
      return query.mock.calls.map(([first, values]) => {
        const statement: unknown = first;
        const text =
          typeof statement === 'string' ? statement : (statement as { text: string }).text;
        return { text, values: Array.isArray(values) ? (values as unknown[]) : [] };
      });
    } finally {
      query.mockRestore();
    }
  }

  /**
   * Returns the statements that PostgreSQL would compile. Fails if there are not more than 30 to
   * check.
   */
  async function compiledOf(sent: readonly Sent[]): Promise<string[]> {
    const texts = new Map(sent.map((statement) => [statement.text, statement]));
    const planned = [...texts.values()].filter(({ text }) =>
      /^\s*(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(text),
    );
    expect(planned.length).toBeGreaterThan(30);
    const compiled: string[] = [];
    for (const statement of planned) {
      if ((await costOf(statement)) >= COMPILED_FROM) compiled.push(statement.text);
    }
    return compiled;
  }

  /** Returns the estimated cost of a statement, which decides if PostgreSQL compiles it. */
  async function costOf({ text, values }: Sent): Promise<number> {
    const [row] = await rows<{ 'QUERY PLAN': { Plan: { 'Total Cost': number } }[] }>(
      app.dataSource,
      `EXPLAIN (FORMAT JSON) ${text}`,
      [...values],
    );
    return row?.['QUERY PLAN'][0]?.Plan['Total Cost'] ?? Infinity;
  }
});
