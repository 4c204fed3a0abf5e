import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addMember, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

const figuresOf = (html: string) =>
  Object.fromEntries(
    [...html.matchAll(/data-figure="([^"]+)">([^<]+)</g)].map(([, name, value]) => [name, value]),
  );

describe('the overview of an organization', () => {
  it('counts its members, those without a key and those with one, and no member of another organization', async () => {
    const { client: ada } = await app.enrolled('ada@overview.example');
    await app.enrolled('bob@overview.example');
    await app.enrolled('eve@other-overview.example');
    await addMember(app, 'ada@overview.example', 'cleo@overview.example');
    const page = await ada.get('/admin');
    expect(page.status).toBe(200);
    expect(figuresOf(page.text)).toEqual({ members: '3', 'without-key': '1', 'one-key': '2' });
    expect(page.text).not.toContain('eve@');
  });

  it('warns of a SCIM token that expires within 30 days, and lists the latest changes', async () => {
    const { client: ada } = await app.enrolled('ada@expiry.example');
    expect((await ada.get('/admin')).text).toContain('No token expires within 30 days.');
    await orgApi(ada, 'POST', '/scim-tokens', { description: 'Okta', expires_in_days: 29 });
    await orgApi(ada, 'POST', '/scim-tokens', { description: 'Entra', expires_in_days: 31 });
    const { text } = await ada.get('/admin');
    expect(text).toContain('One token expires within 30 days');
    expect(text).toContain('<bdi>ada@expiry.example</bdi> made the SCIM token “<bdi>Okta</bdi>”');
  });

  it('sends a visitor to the login and back, and refuses a member who is no admin', async () => {
    await app.enrolled('ada@closed.example');
    const { client: bob } = await app.enrolled('bob@closed.example');
    for (const path of ['/admin', '/admin/members', '/admin/members?keys=none']) {
      const visit = await app.client().get(path);
      expect([visit.status, visit.headers.get('location')]).toEqual([
        303,
        `/login?redirect_to=${encodeURIComponent(path)}`,
      ]);
      expect((await bob.get(path)).status).toBe(403);
    }
  });

  it('counts keys as they come and go', async () => {
    const { client: ada } = await app.enrolled('ada@keys-come.example');
    const { client: bob } = await app.enrolled('bob@keys-come.example');
    const facts = () =>
      rows(
        app.dataSource,
        `SELECT key_count, key_used_on = (now() AT TIME ZONE 'UTC')::date AS used FROM users WHERE email = 'bob@keys-come.example'`,
      );
    expect(await facts()).toEqual([{ key_count: 1, used: true }]);
    const { members } = (await orgApi(ada, 'GET', '/members')).json;
    const id = members.at(-1).id as string;
    expect((await orgApi(ada, 'POST', `/members/${id}/revoke-credentials`)).status).toBe(200);
    expect(await facts()).toEqual([{ key_count: 0, used: false }]);
    expect((await bob.get('/v1/keys')).status).toBe(401);
  });
});
