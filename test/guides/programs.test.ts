import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { madeApiToken, TEST_NETWORKS } from '../support/api-tokens.js';
import type { TestApp } from '../support/app.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { PublicName } from '../support/public-name.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { count } from '../support/rows.js';

requires('curl').describe('the guide for programs', () => {
  let name: PublicName;
  let app: TestApp;
  let folder: string;
  beforeAll(async () => {
    name = await PublicName.open();
    app = await name.startApp();
    folder = await makeTemporaryDirectory();
  });
  afterAll(async () => {
    await app.close();
    await name.close();
    await removeDirectory(folder);
  });

  it('rotates a SCIM token and ships the audit log with nothing but an API token', async () => {
    const { client } = await app.enrolled('ada@cron.example');
    const old = (await orgApi(client, 'POST', '/scim-tokens', { description: 'Okta' })).json;
    const { token } = await madeApiToken(client, ['audit:read', 'scim-tokens:rotate'], {
      allowed_cidrs: TEST_NETWORKS,
      scim_token_ids: [old.id],
    });
    const file = (part: string) => join(folder, part);
    writeFileSync(file('api-token'), `Authorization: Bearer ${token}\n`, { mode: 0o600 });
    writeFileSync(file('scim-id'), old.id);
    const environment = {
      ...name.env,
      SVC_URL: app.baseUrl,
      SVC_TOKEN_FILE: file('api-token'),
      AUDIT_FILE: file('audit.ndjson'),
      SCIM_ID_FILE: file('scim-id'),
      SCIM_TOKEN_FILE: file('scim-token'),
      PATH: process.env['PATH'] ?? '',
    };
    const ship = () => runToSuccess(guideBlock('programs.md', 'ship'), { env: environment });
    const rotate = () => runToSuccess(guideBlock('programs.md', 'rotate'), { env: environment });
    const read = (part: string) => readFileSync(file(part), 'utf8').trim();

    await ship();
    const first = read('audit.ndjson').split('\n').length;
    await ship(); // the log has no new event
    expect(read('audit.ndjson').split('\n')).toHaveLength(first);

    await rotate();
    expect(read('scim-token')).toMatch(/^svc_scim_[\w-]{43}$/);
    expect(read('scim-id')).not.toBe(old.id);
    const users = (bearer: string) =>
      app.client().get('/scim/v2/Users', { headers: { authorization: `Bearer ${bearer}` } });
    for (const bearer of [old.token, read('scim-token')]) {
      expect((await users(bearer)).status).toBe(200);
    }
    await rotate();
    expect((await users(old.token)).status).toBe(401);

    await ship();
    const lines = read('audit.ndjson').split('\n');
    const ids = lines.map((line) => (JSON.parse(line) as { id: string }).id);
    expect(new Set(ids).size).toBe(ids.length);
    const all = 'audit_events WHERE org_id = (SELECT org_id FROM users WHERE email = $1)';
    expect(ids).toHaveLength(await count(app.dataSource, all, ['ada@cron.example']));
    expect(existsSync(file('audit.ndjson.cursor'))).toBe(true);
    expect(lines.join('')).not.toContain(token);
  });
});
