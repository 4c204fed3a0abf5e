import { join } from 'node:path';
import { Client as Database } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GitHubStandIn } from '@svc/stand-ins/github';
import { startTestApp } from '../../support/app.js';
import { runScript } from '../../support/child-script.js';
import { Client, newAddress } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { askToken, link } from '../../support/github.js';
import type { ReplicaAnswer, ReplicaArgument } from '../../support/replica.js';
import { foundOrganization } from '../../support/scim-organization.js';
import { makeTemporaryDirectory, removeDirectory } from '../../support/temporary-directory.js';
import '../../support/full-scale-only.js';

describe('a server that is killed while GitHub is away', () => {
  let database: TestDatabase;
  let observer: Database;
  let github: GitHubStandIn;
  let folder: string;
  beforeAll(async () => {
    database = await createTestDatabase();
    observer = new Database({ connectionString: database.url });
    await observer.connect();
    github = await GitHubStandIn.start();
    folder = await makeTemporaryDirectory();
  });
  afterAll(async () => {
    await observer.end();
    await database.drop();
    await github.close();
    await removeDirectory(folder);
  });

  const attempts = async (): Promise<unknown> => {
    const { rows } = await observer.query<{ attempts: number }>(
      'SELECT attempts FROM github_tokens',
    );
    return rows[0]?.attempts;
  };

  it('has told GitHub of a SCIM DELETE when it runs again, a minute later', async () => {
    const environment = {
      ...github.environment,
      SVC_SSH_CA_KEY_PATH: join(folder, 'ssh_ca_key'),
    };
    const app = await startTestApp({ database, environment });
    const { admin, scim, token: scimToken } = await foundOrganization(app, 'crash.example');
    await link(github, admin, github.state.install('crash-org', { repositories: ['hello'] }));
    const { id } = (await scim('POST', '/Users', { userName: 'dev@crash.example' })).json;
    const { client } = await app.enrolled('dev@crash.example');
    expect((await askToken(client, { repositories: ['hello'] })).status).toBe(200);
    await app.close();
    const [token] = github.state.tokens;

    await github.away();
    const argument: ReplicaArgument = { database: { url: database.url }, environment };
    const first = runScript<ReplicaAnswer>('replica.ts', argument);
    const { baseUrl } = await first.answer;
    const deleted = await new Client(baseUrl).send('DELETE', `/scim/v2/Users/${String(id)}`, {
      address: newAddress(),
      headers: { authorization: `Bearer ${scimToken}`, origin: '' },
    });
    expect(deleted.status).toBe(204);
    await expect.poll(attempts, { timeout: 90_000 }).toBeGreaterThan(0);
    await first.kill();
    expect(token?.revoked).toBe(false);
    expect(await attempts()).toBeGreaterThan(0);

    // The next try becomes due, as after a minute, and GitHub is reachable again.
    await observer.query(
      "UPDATE github_tokens SET next_attempt_at = next_attempt_at - interval '1 minute'",
    );
    await github.back();
    const second = runScript<ReplicaAnswer>('replica.ts', argument);
    await second.answer;
    await expect.poll(() => token?.revoked, { timeout: 90_000 }).toBe(true);
    await expect.poll(attempts, { timeout: 90_000 }).toBeUndefined();
    const { rows } = await observer.query<{ details: unknown }>(
      "SELECT details FROM audit_events WHERE type = 'github_token_revoked'",
    );
    expect(rows).toMatchObject([{ details: { outcome: 'revoked', revoked_by: 'scim' } }]);
    await second.finish();
  });
});
