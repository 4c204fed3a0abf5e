import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { madeApiToken } from '../../support/api-tokens.js';
import { link, startGitHubApplication, type GitHubApplication } from '../../support/github.js';
import { newAddress, type Client } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import { orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

/** The tables that the writes in this file could change. */
const TABLES = [
  'organizations',
  'organization_domains',
  'organization_providers',
  'organization_issuers',
  'scim_tokens',
  'api_tokens',
  'oauth_clients',
  'oauth_client_secrets',
  'github_installations',
];

let service: GitHubApplication;
let admin: Client;
let eve: Client;
/** The ids of what the organization has, for the paths of the writes. */
let ids: Record<'token' | 'api' | 'provider' | 'application' | 'secret' | 'installation', string>;
beforeAll(async () => {
  service = await startGitHubApplication();
  admin = service.organization.admin.client;
  ({ client: eve } = await service.app.enrolled('eve@octo-rival.example'));
  const get = async (path: string) => (await admin.get(path, { address: newAddress() })).json;
  const { json: made } = await admin.post('/api/v1/applications', {
    name: 'Robot',
    type: 'service',
  });
  await orgApi(admin, 'POST', '/domains', { domain: 'octo-lab.example' });
  ids = {
    token: (await get('/api/v1/org/scim-tokens')).tokens[0].id,
    api: (await madeApiToken(admin)).id,
    provider: (await get('/api/v1/org/providers')).providers[0].id,
    application: made.client_id as string,
    secret: (await get(`/api/v1/applications/${made.client_id}/secrets`)).secrets[0].id,
    installation: String(service.installation.id),
  };
});
afterAll(() => service.close());

/**
 * Returns every write of the settings pages that demands a recent touch, on things that exist and
 * with a valid body.
 */
const writes = (): [method: string, path: string, body?: object][] => [
  ['PATCH', '/api/v1/org', { name: 'Changed', membership: 'open' }],
  ['POST', '/api/v1/org/scim-tokens', { description: 'x', replaces: ids.token }],
  ['POST', '/api/v1/org/api-tokens', { name: 'x', scopes: ['audit:read'] }],
  ['POST', `/api/v1/org/api-tokens/${ids.api}/rotate`, {}],
  ['DELETE', `/api/v1/org/api-tokens/${ids.api}`],
  ['POST', '/api/v1/org/domains', { domain: 'octo-new.example' }],
  ['DELETE', '/api/v1/org/domains/octo-lab.example'],
  ['DELETE', `/api/v1/org/providers/${ids.provider}`],
  ['DELETE', `/v1/credentials/github/installations/${ids.installation}`],
  ['POST', `/api/v1/applications/${ids.application}/secrets`, {}],
  ['DELETE', `/api/v1/applications/${ids.application}/secrets/${ids.secret}`],
];
/**
 * Returns the writes that demand no recent touch, because they reduce access or concern one
 * application alone.
 */
const untouched = (): [method: string, path: string, body?: object][] => [
  ['DELETE', `/api/v1/org/scim-tokens/${ids.token}`],
  ['PATCH', `/api/v1/applications/${ids.application}`, { name: 'Changed' }],
  ['DELETE', `/api/v1/applications/${ids.application}`],
];

const digest = async () =>
  Promise.all(
    TABLES.map(async (name) => {
      const [row] = await rows<{ md5: string }>(
        service.app.dataSource,
        `SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) AS md5 FROM ${name} t`,
      );
      return [name, row?.md5];
    }),
  );

/** Sends each write, and returns its status and problem code as one text each. */
async function sendAll(
  client: Client,
  list: ReturnType<typeof writes>,
  headers: Record<string, string> = {},
): Promise<string[]> {
  const codes: string[] = [];
  for (const [method, path, body] of list) {
    const options = { address: newAddress(), headers, ...(body ? { body } : {}) };
    const answer = await client.send(method, path, options);
    codes.push(`${answer.status} ${answer.json?.code}`);
  }
  return codes;
}

describe('the writes of the pages of settings, on things that exist', () => {
  it('are refused from another origin, without one, and from the page of another session', async () => {
    const before = await digest();
    const all = [...writes(), ...untouched()];
    for (const origin of ['https://evil.example', 'null', '']) {
      const codes = await sendAll(admin, all, { origin });
      expect(new Set(codes)).toEqual(new Set(['403 invalid_origin']));
    }
    const stale = { 'svc-session': '00000000-0000-7000-8000-000000000000' };
    expect(new Set(await sendAll(admin, all, stale))).toEqual(new Set(['409 stale_page']));
    expect(await digest()).toEqual(before);
  });

  it('are refused without a touch of the last 5 minutes', async () => {
    const before = await digest();
    await touchedAgo(service.app, 'admin@octo.example', 301);
    const codes = await sendAll(admin, writes());
    expect(new Set(codes)).toEqual(new Set(['401 insufficient_user_authentication']));
    expect(await digest()).toEqual(before);
    await touchedAgo(service.app, 'admin@octo.example', 0);
  });

  it('are refused to an admin of another organization: its pages and things do not exist there', async () => {
    const before = await digest();
    const named = [...writes(), ...untouched()].filter(([, path]) => /\/[\w-]+-|\d/.test(path));
    const foreign = named.filter(([, path]) => Object.values(ids).some((id) => path.includes(id)));
    const codes = await sendAll(eve, foreign);
    expect(codes.length).toBeGreaterThan(5);
    expect(new Set(codes)).toEqual(new Set(['404 not_found']));
    const paths = [
      `/admin/scim-tokens/${ids.token}/rotate`,
      `/admin/api-tokens/${ids.api}/rotate`,
      '/admin/domains/octo-lab.example',
      `/admin/providers/${ids.provider}`,
      `/admin/applications/${ids.application}`,
    ];
    for (const path of paths) {
      expect((await admin.get(path, { address: newAddress() })).status, path).toBe(200);
      expect((await eve.get(path, { address: newAddress() })).status, path).toBe(404);
    }
    expect(await digest()).toEqual(before);
  });

  it('are refused to an admin who was demoted while the page was open', async () => {
    const before = await digest();
    const role = 'UPDATE users SET is_org_admin = $2 WHERE email = $1';
    await rows(service.app.dataSource, role, ['admin@octo.example', false]);
    const org = writes().filter(([, path]) => !path.includes('/applications/'));
    expect(new Set(await sendAll(admin, org))).toEqual(new Set(['403 admin_required']));
    for (const path of ['settings', 'domains', 'providers', 'github', 'applications']) {
      const page = await admin.get(`/admin/${path}`, { address: newAddress() });
      expect(page.status).toBe(403);
    }
    expect(await digest()).toEqual(before);
    await rows(service.app.dataSource, role, ['admin@octo.example', true]);
  });

  it('save over no change of another admin: an older entity tag is refused, a missing one passes', async () => {
    const { headers } = await orgApi(admin, 'GET', '');
    const ifMatch = { 'if-match': headers.get('etag') ?? '' };
    const patch = (name: string, own: Record<string, string>) =>
      admin.send('PATCH', '/api/v1/org', { address: newAddress(), headers: own, body: { name } });
    expect((await patch('One', ifMatch)).status).toBe(200);
    expect((await patch('Two', ifMatch)).status).toBe(412);
    expect((await orgApi(admin, 'GET', '')).json.name).toBe('One');
    expect((await patch('Three', {})).status).toBe(200);
  });
});

describe('the page of GitHub', () => {
  it('lists an installation with the tokens that end, and the unlinking says what ended', async () => {
    const { client } = await service.member('dev@octo.example');
    const token = await client.post('/v1/credentials/github/token', {});
    expect(token.status).toBe(200);
    const page = await admin.get('/admin/github', { address: newAddress() });
    expect(page.text).toContain('1 token ends at GitHub.');
    const unlinked = await admin.send(
      'DELETE',
      `/v1/credentials/github/installations/${ids.installation}`,
      { address: newAddress(), headers: { prefer: 'return=representation' } },
    );
    expect([unlinked.status, unlinked.json]).toEqual([200, { ended: { github_tokens: 1 } }]);
    const after = await admin.get('/admin/github', { address: newAddress() });
    expect(after.text).not.toContain('data-installation');
  });

  it('is the way back from GitHub, after a link and after a failed one', async () => {
    const linked = await link(service.github, service.organization.admin, service.installation);
    expect([linked.status, linked.text]).toEqual([
      200,
      expect.stringContaining('href="/admin/github"'),
    ]);
    const failed = await admin.get('/v1/credentials/github/callback?state=x&code=y', {
      address: newAddress(),
    });
    expect([failed.status, failed.text]).toEqual([
      400,
      expect.stringContaining('href="/admin/github"'),
    ]);
  });
});
