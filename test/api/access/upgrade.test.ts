import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DataSource } from 'typeorm';
import { openMigrationConnection } from '#platform/database/connection.js';
import { migrate } from '#platform/database/migrations.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addWebApplication, type Application } from '../../support/applications.js';
import { cliToken, clusterToken } from '../../support/cli-token.js';
import { newAddress } from '../../support/client.js';
import { createEmptyDatabase, type TestDatabase } from '../../support/database.js';
import { assigned } from '../../support/domains.js';
import { earlierMigrations } from '../../support/earlier-migrations.js';
import { askToken, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { newCodeFields, postForm } from '../../support/oauth-flow.js';
import { RecordingLog } from '../../support/recording-log.js';
import { rows } from '../../support/rows.js';
import { PUBLIC_KEY } from '../../support/ssh-issuance.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';

const DOMAIN = 'octo.example';
const CLUSTER = `https://prod.${DOMAIN}`;
const MEMBER = `member@${DOMAIN}`;

/**
 * The tables about the database itself and its replicas, which describe one database and are not
 * copied.
 */
const OF_THE_DATABASE = ['schema_migrations', 'database_identity', 'replicas', 'replica_reports'];

/** Copies all rows into a database with an earlier schema, which lacks newer tables and columns. */
async function copyRows(from: DataSource, to: DataSource): Promise<void> {
  const tables = await rows<{ name: string; columns: string }>(
    to,
    `SELECT c.table_name AS name, string_agg(quote_ident(c.column_name), ', ') AS columns
     FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.is_generated = 'NEVER'
       AND c.table_name <> ALL ($1) GROUP BY c.table_name`,
    [OF_THE_DATABASE],
  );
  await to.transaction(async (tx) => {
    await tx.query('SET LOCAL session_replication_role = replica');
    for (const { name, columns } of tables) {
      const [found] = await rows<{ all: unknown }>(
        from,
        `SELECT coalesce(jsonb_agg(t), '[]') AS all FROM ${name} t`,
      );
      await tx.query(`DELETE FROM ${name}`);
      await tx.query(
        `INSERT INTO ${name} (${columns}) OVERRIDING SYSTEM VALUE SELECT ${columns} FROM jsonb_populate_recordset(NULL::${name}, $1::jsonb)`,
        [JSON.stringify(found?.all)],
      );
    }
  });
}

describe('a database of 0.12.0 with people, an application, a cluster and an installation', () => {
  let earlier: GitHubApplication;
  let member: EnrolledUser & { readonly id: string };
  let web: Application;
  let database: TestDatabase;
  let folder: string;
  let app: TestApp;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    const SVC_JWT_SECRET = 'the root secret of both versions';
    earlier = await startGitHubApplication({
      environment: { SVC_JWT_SECRET, SVC_DATA_DIR: folder },
    });
    member = await earlier.member(MEMBER);
    web = await addWebApplication(earlier.app, `admin@${DOMAIN}`);
    await assigned(earlier.app, `admin@${DOMAIN}`, DOMAIN);
    const cluster = await earlier.organization.admin.client.post('/api/v1/applications', {
      name: 'Production',
      type: 'kubernetes',
      resource: CLUSTER,
    });
    if (cluster.status !== 201) throw new Error(cluster.text);
    database = await createEmptyDatabase();
    const log = new RecordingLog();
    const dataSource = await openMigrationConnection({ connectionString: database.url }, log);
    await migrate(dataSource, log, await earlierMigrations('0.12', folder));
    await copyRows(earlier.app.dataSource, dataSource);
    await dataSource.destroy();
    app = await startTestApp({
      database,
      environment: { ...earlier.github.environment, SVC_JWT_SECRET, SVC_DATA_DIR: folder },
    });
  });
  afterAll(async () => {
    await app.close();
    await earlier.close();
    await database.drop();
    await removeDirectory(folder);
  });

  /**
   * Requests every kind of credential in the session that the member opened before the upgrade.
   * Returns the HTTP statuses.
   */
  async function decisions(at: TestApp): Promise<Record<string, number>> {
    const client = at.client();
    client.setCookie('svc_session', member.client.cookie('svc_session') ?? '');
    const ask = async (path: string, body: object) =>
      (await client.post(path, body, { address: newAddress() })).status;
    const fields = await newCodeFields(client, web.clientId, { scope: 'openid email' });
    const secret = { client_id: web.clientId, client_secret: web.clientSecret };
    const cli = await cliToken(at, member.key);
    return {
      'an SSH certificate': await ask('/v1/credentials/ssh', { public_key: PUBLIC_KEY }),
      'a token for AWS': await ask('/v1/credentials/aws/token', {}),
      'a token for a role of AWS': await ask('/v1/credentials/aws/token', {
        role_arn: 'arn:aws:iam::123456789012:role/deploy',
      }),
      'a GitHub token': (await askToken(client, { owner: 'octo-org' })).status,
      'a GitHub token of another owner': (await askToken(client, { owner: 'none' })).status,
      'the tokens of a code': (await postForm(at, '/oauth/token', { ...fields, ...secret })).status,
      'a token for the cluster': (await clusterToken(at, cli, CLUSTER)).status,
    };
  }

  it('changes no decision by the upgrade, in sessions that were open meanwhile', async () => {
    const expected = {
      'an SSH certificate': 200,
      'a token for AWS': 200,
      'a token for a role of AWS': 200,
      'a GitHub token': 200,
      'a GitHub token of another owner': 404,
      'the tokens of a code': 200,
      'a token for the cluster': 200,
    };
    expect(await decisions(earlier.app)).toEqual(expected);
    expect(await decisions(app)).toEqual(expected);
  });

  it('has a target for everyone without conditions for the application, the cluster and the installation', async () => {
    const targets = await rows(
      app.dataSource,
      `SELECT kind, access, num_nonnulls(touch_within_seconds, models, user_verification) AS conditions, count(*)::int AS n
       FROM access_targets GROUP BY 1, 2, 3 ORDER BY 1`,
    );
    expect(targets).toEqual([
      { kind: 'application', access: 'everyone', conditions: 0, n: 2 },
      { kind: 'github_installation', access: 'everyone', conditions: 0, n: 1 },
    ]);
    const queued = await rows(app.dataSource, 'SELECT FROM access_endings');
    expect(queued).toEqual([]);
  });
});
