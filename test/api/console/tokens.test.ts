import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expiresSoon } from '../../../src/domain/directory/scim-tokens/token-expiry.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Client } from '../../support/client.js';
import { orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

let app: TestApp;
let ada: Client;
let bob: Client;
let eve: Client;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@rotation.example'));
  ({ client: bob } = await app.enrolled('bob@rotation.example'));
  ({ client: eve } = await app.enrolled('eve@other-rotation.example'));
});
afterAll(() => app.close());

interface Listed {
  readonly id: string;
  readonly created_by_email: string;
  readonly expires_soon: boolean;
  readonly replaces: string | null;
}

const created = (admin: Client, replaces?: string) =>
  orgApi(admin, 'POST', '/scim-tokens', {
    description: 'Okta',
    ...(replaces === undefined ? {} : { replaces }),
  });
const listed = async (admin: Client) =>
  (await orgApi(admin, 'GET', '/scim-tokens')).json.tokens as Listed[];
const rotationPage = (admin: Client, id: string) => admin.get(`/admin/scim-tokens/${id}/rotate`);

describe('the rotation of a SCIM token', () => {
  it('gives one replacement to 20 requests at once, and names the replaced token in list and audit', async () => {
    const old = (await created(ada)).json.id as string;
    const answers = await Promise.all(Array.from({ length: 20 }, () => created(ada, old)));
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    expect(answers.find(({ status }) => status === 409)?.json.code).toBe('rotation_pending');
    const replacements = (await listed(ada)).filter(({ replaces }) => replaces === old);
    expect(replacements).toMatchObject([{ created_by_email: 'ada@rotation.example' }]);
    const [audited] = await rows<{ replaces: string }>(
      app.dataSource,
      `SELECT details ->> 'replaces' AS replaces FROM audit_events
       WHERE type = 'scim_token_created' AND details ->> 'scim_token_id' = $1`,
      [replacements[0]?.id],
    );
    expect(audited?.replaces).toBe(old);
  });

  it('may begin again when the replacement has ended', async () => {
    const old = (await created(ada)).json.id as string;
    const first = (await created(ada, old)).json.id as string;
    await orgApi(ada, 'DELETE', `/scim-tokens/${first}`);
    expect((await created(ada, old)).status).toBe(201);
  });

  it('refuses to replace an ended token, an unknown one, and one of another organization', async () => {
    const ended = (await created(ada)).json.id as string;
    await orgApi(ada, 'DELETE', `/scim-tokens/${ended}`);
    const foreign = (await created(eve)).json.id as string;
    const before = await listed(ada);
    for (const id of [ended, foreign, 'x', '00000000-0000-7000-8000-000000000000']) {
      expect((await created(ada, id)).status).toBe(404);
      expect((await rotationPage(ada, id)).status).toBe(404);
    }
    expect(await listed(ada)).toEqual(before);
  });

  it('shows its pages to admins alone, and sends a visitor to the login and back', async () => {
    const { id } = (await created(ada)).json as Listed;
    for (const path of ['/admin/scim-tokens', `/admin/scim-tokens/${id}/rotate`]) {
      expect((await bob.get(path)).status).toBe(403);
      const visitor = await app.client().get(path);
      expect(visitor.headers.get('location')).toBe(
        `/login?redirect_to=${encodeURIComponent(path)}`,
      );
    }
  });

  it('names the admin who made a token by the address of that time', async () => {
    const { id } = (await created(ada)).json as Listed;
    const rename = 'UPDATE users SET email = $2 WHERE email = $1';
    await rows(app.dataSource, rename, ['ada@rotation.example', 'lovelace@rotation.example']);
    const found = (await listed(ada)).find((token) => token.id === id);
    expect(found?.created_by_email).toBe('ada@rotation.example');
    await rows(app.dataSource, rename, ['lovelace@rotation.example', 'ada@rotation.example']);
  });
});

describe('the notice before the end of a token', () => {
  it('begins 30 days before the end, in the list and on the page', async () => {
    const { id } = (await created(ada)).json as Listed;
    const soon = async () => (await listed(ada)).find((token) => token.id === id)?.expires_soon;
    expect(await soon()).toBe(false);
    await rows(
      app.dataSource,
      `UPDATE scim_tokens SET expires_at = now() + interval '29 days' WHERE id = $1`,
      [id],
    );
    expect(await soon()).toBe(true);
    expect((await ada.get('/admin/scim-tokens')).text).toContain('data-expiring');
  });

  it('is a matter of the time alone', () => {
    const now = new Date('2026-11-22T00:00:00Z');
    const within = (milliseconds: number) =>
      expiresSoon({ expiresAt: new Date(now.getTime() + milliseconds) }, now);
    expect([within(30 * 86_400_000), within(30 * 86_400_000 + 1)]).toEqual([true, false]);
  });
});
