import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PLANTED_TEXT, type StandInFault } from '@svc/stand-ins/github-state';
import { startTestApp } from '../../support/app.js';
import type { Answer, Client } from '../../support/client.js';
import {
  allowAll,
  askToken,
  link,
  startGitHubApplication,
  type GitHubApplication,
} from '../../support/github.js';
import { touchedAgo } from '../../support/keys.js';
import { auditOf, count, rows } from '../../support/rows.js';

describe('POST /v1/credentials/github/token', () => {
  let running: GitHubApplication;
  let client: Client;
  beforeAll(async () => {
    running = await startGitHubApplication();
    ({ client } = await running.member('dev@octo.example'));
  });
  afterAll(() => running.close());
  beforeEach(() => {
    running.github.state.fault = 'none';
    running.installation.suspended_at = null;
  });

  const minted = () => running.github.state.tokens;

  it('mints a token of the installation, with contents: write and metadata: read', async () => {
    const answer = await askToken(client);
    expect(answer.status).toBe(200);
    const token = minted().at(-1);
    expect(answer.json).toEqual({
      token: token?.token,
      expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      permissions: { contents: 'write', metadata: 'read' },
      repositories: null,
    });
    expect(answer.headers.get('cache-control')).toContain('no-store');
    expect(Date.parse(answer.json.expires_at)).toBeLessThanOrEqual(token?.expiresAt ?? 0);
  });

  it('narrows the repositories and the permissions', async () => {
    const asked = { owner: 'OCTO-org', repositories: ['hello'], permissions: { contents: 'read' } };
    const answer = await askToken(client, asked);
    expect(answer.json).toMatchObject({
      permissions: { contents: 'read', metadata: 'read' },
      repositories: ['hello'],
    });
    expect(minted().at(-1)).toMatchObject({
      permissions: { contents: 'read', metadata: 'read' },
      repositories: ['hello'],
    });
    const withOwner = await askToken(client, { repositories: ['octo-org/world'] });
    expect(withOwner.json.repositories).toEqual(['world']);
  });

  it.each([
    [{ permissions: { contents: 'admin' } }, 403, 'permission_not_allowed'],
    [{ permissions: { issues: 'read' } }, 403, 'permission_not_allowed'],
    [{ permissions: { metadata: 'write' } }, 403, 'permission_not_allowed'],
    [{ permissions: { constructor: 'read' } }, 400, 'invalid_request'],
    [{ permissions: {} }, 400, 'invalid_request'],
    [{ repositories: [] }, 400, 'invalid_request'],
    [{ repositories: ['other-org/hello'] }, 400, 'invalid_request'],
    [{ repositories: ['../hello'] }, 400, 'invalid_request'],
    [{ repositories: ['absent'] }, 404, 'not_found'],
    [{ owner: 'other-org' }, 404, 'not_found'],
    [{ owner: 7 }, 400, 'invalid_request'],
  ])('refuses %j', async (body, status, code) => {
    const before = minted().length;
    const answer = await askToken(client, body);
    expect([answer.status, answer.json.code]).toEqual([status, code]);
    expect(minted()).toHaveLength(before);
  });

  it('names its repositories, unless an admin allows all with a touch; to end that revokes such tokens', async () => {
    const { organization, app, github } = running;
    const { client: admin } = organization.admin;
    const all = await askToken(client);
    const named = await askToken(client, { repositories: ['hello'] });
    expect([all.status, named.status]).toEqual([200, 200]);

    expect((await allowAll(client, true)).status).toBe(403);
    await touchedAgo(app, 'admin@octo.example', 301);
    expect((await allowAll(admin, false)).status).toBe(401);
    await touchedAgo(app, 'admin@octo.example', 0);
    const changed = await allowAll(admin, false);
    expect([changed.status, changed.json.all_repositories]).toEqual([200, false]);
    expect(changed.json.ended.github_tokens).toBeGreaterThan(0);
    await expect.poll(() => github.state.liveToken(all.json.token)).toBeUndefined();
    expect(github.state.liveToken(named.json.token)).toBeDefined();

    const before = minted().length;
    for (const body of [{}, { owner: 'octo-org' }, { permissions: { contents: 'read' } }]) {
      const refused = await askToken(client, body);
      expect([refused.status, refused.json.code]).toEqual([400, 'invalid_request']);
      expect(refused.json.detail).toContain('`repositories`');
    }
    expect(minted()).toHaveLength(before);
    expect((await askToken(client, { repositories: ['hello'] })).status).toBe(200);
    const status = () => client.get('/v1/credentials/github/status');
    expect((await status()).json.all_repositories).toBe(false);

    expect((await allowAll(admin, true)).json.all_repositories).toBe(true);
    expect((await status()).json.all_repositories).toBe(true);
    expect((await askToken(client)).json.repositories).toBeNull();
    const events = await rows<{ details: object }>(
      app.dataSource,
      `SELECT details FROM audit_events
       WHERE type = 'org_updated' AND details -> 'github_all_repositories' IS NOT NULL ORDER BY created_at`,
    );
    expect(events.map(({ details }) => details)).toEqual([
      { github_all_repositories: { from: true, to: false } },
      { github_all_repositories: { from: false, to: true } },
    ]);
  });

  it('names its repositories in a new organization, and none that exists at the upgrade', async () => {
    const { app } = running;
    await app.enrolled('founder@fresh-repositories.example');
    const [fresh] = await rows<{ allows: boolean }>(
      app.dataSource,
      `SELECT github_all_repositories AS allows FROM organizations WHERE name = 'fresh-repositories.example'`,
    );
    expect(fresh?.allows).toBe(false);
    const migration = readFileSync('migrations/1763790070000-github-repositories.sql', 'utf8');
    const upgraded = await app.dataSource.transaction(async (tx) => {
      await tx.query('CREATE TEMPORARY TABLE organizations (name text) ON COMMIT DROP');
      await tx.query(`INSERT INTO organizations VALUES ('of 0.9')`);
      await tx.query(
        migration.replaceAll('ALTER TABLE organizations', 'ALTER TABLE pg_temp.organizations'),
      );
      await tx.query(`INSERT INTO organizations VALUES ('of 0.10')`);
      return tx.query('SELECT name, github_all_repositories AS allows FROM pg_temp.organizations');
    });
    expect(upgraded).toEqual([
      { name: 'of 0.9', allows: true },
      { name: 'of 0.10', allows: false },
    ]);
  });

  it('is refused for all repositories without another reason if an admin forbids it meanwhile', async () => {
    const { state } = running.github;
    const { promise, resolve } = Promise.withResolvers<void>();
    state.parked = promise;
    const before = minted().length;
    const asked = askToken(client);
    await expect.poll(() => minted().length).toBe(before + 1);
    const { client: admin } = running.organization.admin;
    expect((await allowAll(admin, false)).status).toBe(200);
    resolve();
    state.parked = undefined;
    const refused = await asked;
    expect((await allowAll(admin, true)).status).toBe(200);
    expect([refused.status, refused.json.code]).toEqual([404, 'not_found']);
    // The installation is still linked.
    expect(refused.json.detail).not.toContain('no longer linked');
  });

  it('gives 20 requests of the same moment 20 tokens', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => askToken(client)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(new Set(answers.map(({ json }) => json.token as string)).size).toBe(20);
  });

  it('answers 403 for a suspended installation, known by GitHub alone or by the service too', async () => {
    running.installation.suspended_at = new Date().toISOString();
    const answer = await askToken(client);
    expect([answer.status, answer.json.code]).toEqual([403, 'github_suspended']);
  });

  it('answers 404 for an installation that was removed at GitHub', async () => {
    const { installations } = running.github.state;
    installations.delete(running.installation.id);
    const answer = await askToken(client);
    installations.set(running.installation.id, running.installation);
    expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
  });

  it.each([
    ['rate-limited', /^1?\d{3}$/],
    ['secondary-limit', /^60$/],
    ['bad-gateway', /^$/],
  ] as [StandInFault, RegExp][])(
    'answers 502 and leaks nothing of GitHub when it is %s',
    async (fault, wait) => {
      running.github.state.fault = fault;
      const before = running.app.log.length;
      const answer = await askToken(client);
      expect([answer.status, answer.json.code]).toEqual([502, 'github_unavailable']);
      expect(answer.headers.get('retry-after') ?? '').toMatch(wait);
      const log = running.app.log.slice(before).join('');
      expect(log).toContain('access_tokens'); // the log names the request that failed
      for (const text of [PLANTED_TEXT, 'Unicorn', 'installation ID']) {
        expect(answer.text).not.toContain(text);
        expect(log).not.toContain(text);
      }
    },
  );

  it('answers 502 while GitHub cannot be reached', async () => {
    await running.github.away();
    const answer = await askToken(client);
    await running.github.back();
    expect([answer.status, answer.json.code]).toEqual([502, 'github_unavailable']);
  });

  it('asks for the owner when the organization has linked two installations', async () => {
    const { github, organization, app } = running;
    const second = github.state.install('octo-labs', { repositories: ['lab'] });
    expect((await link(github, organization.admin, second)).status).toBe(200);
    const unnamed = await askToken(client);
    expect(unnamed.status).toBe(400);
    expect(unnamed.json.detail).toContain('octo-labs, octo-org');
    expect((await askToken(client, { owner: 'octo-labs' })).status).toBe(200);
    const path = `/v1/credentials/github/installations/${second.id}`;
    expect((await organization.admin.client.send('DELETE', path)).status).toBe(204);
    expect(await count(app.dataSource, 'github_installations')).toBe(1);
  });

  it.each(['1.5', '1e30', '9223372036854775808', '-1', '0x1g', '%00'])(
    'has no installation with the id %s: 404',
    async (id) => {
      const path = `/v1/credentials/github/installations/${id}`;
      const answer = await running.organization.admin.client.send('DELETE', path);
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
    },
  );

  it('refuses a member of another organization, a person without one, and a bootstrap session', async () => {
    const { app } = running;
    const { client: stranger } = await app.enrolled('dev@other.example');
    expect((await askToken(stranger, { owner: 'octo-org' })).status).toBe(404);
    const { client: alone } = await app.enrolled('dev@gmail.com');
    expect((await askToken(alone)).json).toMatchObject({ status: 403, code: 'issuance_refused' });
    const bootstrap = app.client();
    await bootstrap.signIn('dev@octo.example');
    expect((await askToken(bootstrap)).json.code).toBe('hardware_required');
    expect((await askToken(app.client())).status).toBe(401);
  });

  it('mints nothing for a user whose domain the organization does not own', async () => {
    const { app } = running;
    const domain = "UPDATE organization_domains SET verified_at = $1 WHERE domain = 'octo.example'";
    const before = minted().length;
    await app.dataSource.query(domain, [null]);
    const answer = await askToken(client);
    await app.dataSource.query(domain, [new Date()]);
    expect(answer.json.code).toBe('issuance_refused');
    expect(minted()).toHaveLength(before);
  });

  it('records owner, repositories and permissions in the audit log, and the token nowhere in the clear', async () => {
    const { app } = running;
    const asked = { repositories: ['hello'], permissions: { contents: 'read' } };
    const { token } = (await askToken(client, asked)).json as { token: string };
    const events = await auditOf(app.dataSource, 'dev@octo.example');
    const last = events.filter(({ type }) => type === 'github_credential').at(-1);
    expect(last?.details).toMatchObject({
      owner: 'octo-org',
      repositories: ['hello'],
      permissions: { contents: 'read', metadata: 'read' },
    });
    const tables = await rows<{ name: string }>(
      app.dataSource,
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
    );
    const known = minted().map((one) => one.token);
    for (const { name } of tables) {
      const all = JSON.stringify(await rows(app.dataSource, `SELECT * FROM "${name}"`));
      expect(
        known.filter((one) => all.includes(one)),
        name,
      ).toEqual([]);
    }
    expect(known).toContain(token);
    const log = app.log.join('');
    expect(known.filter((one) => log.includes(one))).toEqual([]);
    expect(log).not.toContain(running.github.state.clientSecret);
    // the JWT by which the App authenticates
    expect(log).not.toMatch(/eyJ[\w-]+\.[\w-]+\.[\w-]{100}/);
  });

  it('ends a token with the session, where the session ends first', async () => {
    const { app } = running;
    const { client: late } = await running.member('late@octo.example');
    const [session] = await rows<{ ends: Date }>(
      app.dataSource,
      `UPDATE sessions SET expires_at = date_trunc('second', now()) + interval '10 minutes'
       WHERE user_id = (SELECT id FROM users WHERE email = 'late@octo.example') RETURNING expires_at AS ends`,
    ).then((result) => result.flat() as { ends: Date }[]);
    const answer = await askToken(late);
    expect(Date.parse(answer.json.expires_at)).toBe(session?.ends.getTime());
    const [row] = await rows(
      app.dataSource,
      'SELECT next_attempt_at AS ends FROM github_tokens ORDER BY issued_at DESC LIMIT 1',
    );
    expect(row).toEqual({ ends: session?.ends });
  });

  it('shows its members the linked installations', async () => {
    const status: Answer = await client.get('/v1/credentials/github/status');
    expect(status.json).toMatchObject({
      configured: true,
      installations: [
        {
          id: running.installation.id,
          owner: 'octo-org',
          suspended: false,
          repository_selection: 'all',
        },
      ],
    });
  });
});

describe('a service without a GitHub App', () => {
  it('answers 503 to each route of GitHub, and says in the status that none is configured', async () => {
    const app = await startTestApp();
    const { client } = await app.enrolled('admin@none.example');
    const answers = [
      await askToken(client),
      await client.post('/v1/credentials/github/link', {}),
      await app.client().post('/api/webhooks/github', {}),
    ];
    expect(answers.map(({ status, json }) => [status, json.code])).toEqual(
      answers.map(() => [503, 'github_not_configured']),
    );
    const status = await client.get('/v1/credentials/github/status');
    expect(status.json).toMatchObject({ configured: false, installations: [] });
    await app.close();
  });
});
