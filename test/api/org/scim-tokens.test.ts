import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  authenticateScimToken,
  insertScimToken,
} from '../../../src/domain/directory/scim-tokens/scim-tokens.repository.js';
import { hashOpaqueToken } from '../../../src/platform/crypto/opaque-token.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { DpopKey } from '../../support/dpop-key.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { idOf, orgApi } from '../../support/org-api.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { count, rows } from '../../support/rows.js';

const DAY = 86_400_000;

let app: TestApp;
/**
 * Ada is the admin of an organization, and bob is a member of it. Eve is the admin of another
 * organization.
 */
let ada: Client;
let bob: Client;
let eve: Client;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled('ada@tokens.example'));
  ({ client: bob } = await app.enrolled('bob@tokens.example'));
  ({ client: eve } = await app.enrolled('eve@elsewhere.example'));
});
afterAll(() => app.close());

interface Created {
  readonly id: string;
  readonly token: string;
  readonly description: string;
  readonly created_at: string;
  readonly expires_at: string;
}

async function created(browser: Client, body: object = { description: 'Okta' }): Promise<Created> {
  const answer = await orgApi(browser, 'POST', '/scim-tokens', body);
  expect([answer.status, answer.text]).toEqual([201, expect.any(String)]);
  return answer.json as Created;
}

const listed = async (browser: Client) =>
  (await orgApi(browser, 'GET', '/scim-tokens')).json.tokens as { id: string }[];

const authenticate = (token: string) =>
  authenticateScimToken(app.dataSource.manager, hashOpaqueToken(token));

const auditOfToken = (id: string) =>
  rows<{ type: string; class: string; actor: string; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT e.type, e.class, a.email AS actor, e.org_id = a.org_id AS ours, e.details
     FROM audit_events e JOIN users a ON a.id = e.actor_id
     WHERE e.details ->> 'scim_token_id' = $1 ORDER BY e.id`,
    [id],
  );

describe('a SCIM token', () => {
  it('is shown once, has 256 random bits, and is stored only as its SHA-256', async () => {
    const { id, token, ...rest } = await created(ada);
    expect(rest).toEqual({
      description: 'Okta',
      created_at: expect.any(String),
      expires_at: expect.any(String),
      membership: 'scim_only',
    });
    expect(token).toMatch(/^svc_scim_[\w-]{43}$/);
    const [row] = await rows(app.dataSource, 'SELECT hash FROM scim_tokens WHERE id = $1', [id]);
    expect(row).toEqual({ hash: hashOpaqueToken(token) });
    const { text } = await orgApi(ada, 'GET', '/scim-tokens');
    expect(text).not.toContain(token.slice('svc_scim_'.length));
    expect(app.log.join('')).not.toContain(token.slice('svc_scim_'.length));
  });

  it('is valid for 90 days by default, and for one to 365', async () => {
    const daysOf = ({ created_at: from, expires_at: to }: Created) =>
      (Date.parse(to) - Date.parse(from)) / DAY;
    expect(daysOf(await created(ada))).toBe(90);
    for (const days of [1, 365]) {
      expect(daysOf(await created(ada, { description: 'x', expires_in_days: days }))).toBe(days);
    }
  });

  it('is valid for days of 24 hours, though the clocks of its database change in between', async () => {
    await app.dataSource.transaction(async (tx) => {
      await tx.query("SET LOCAL timezone = 'Europe/Berlin'");
      const [admin] = await tx.query<{ id: string; org_id: string }[]>(
        "SELECT id, org_id FROM users WHERE email = 'ada@tokens.example'",
      );
      for (const expiresInDays of [60, 120, 180, 240, 300]) {
        const { createdAt, expiresAt } = await insertScimToken(tx, {
          orgId: admin?.org_id ?? '',
          hash: hashOpaqueToken(String(expiresInDays)),
          description: 'x',
          createdBy: admin?.id ?? '',
          expiresInDays,
        });
        expect(expiresAt.getTime() - createdAt.getTime()).toBe(expiresInDays * DAY);
      }
    });
  });

  it('10.25 sets scim_only for its organization and no other one, and its end does not undo that', async () => {
    const provisioned = (email: string) =>
      count(
        app.dataSource,
        "organizations o JOIN users u ON u.org_id = o.id WHERE u.email = $1 AND o.membership = 'scim_only'",
        [email],
      );
    await created(ada);
    for (const { id } of await listed(ada)) await orgApi(ada, 'DELETE', `/scim-tokens/${id}`);
    expect(await listed(ada)).toEqual([]);
    expect(await provisioned('ada@tokens.example')).toBe(1);
    expect(await provisioned('eve@elsewhere.example')).toBe(0);
  });

  it('is listed to every admin of its organization while it is active, the newest first', async () => {
    const first = await created(ada, { description: 'first' });
    const second = await created(ada, { description: 'second' });
    const expired = await created(ada, { description: 'expired' });
    await rows(app.dataSource, 'UPDATE scim_tokens SET expires_at = now() WHERE id = $1', [
      expired.id,
    ]);
    await authenticate(second.token);
    const tokenOf = ({ id, description, created_at, expires_at }: Created) => ({
      id,
      description,
      created_at,
      expires_at,
      created_by: expect.any(String),
      last_used_at: null as unknown,
      created_by_email: 'ada@tokens.example',
      expires_soon: false,
      replaces: null,
    });
    expect(await listed(ada)).toEqual([
      { ...tokenOf(second), last_used_at: expect.any(String) },
      tokenOf(first),
    ]);
    expect((await listed(ada))[0]).toMatchObject({
      created_by: await idOf(app, 'ada@tokens.example'),
    });
    expect(await listed(eve)).toEqual([]);
  });

  it('is audited when it is created and revoked, with the admin, and without the token', async () => {
    const { id, token } = await created(ada, { description: 'Entra' });
    expect((await orgApi(ada, 'DELETE', `/scim-tokens/${id}`)).status).toBe(204);
    const about = { class: 'admin', actor: 'ada@tokens.example', ours: true };
    expect(await auditOfToken(id)).toEqual([
      {
        ...about,
        type: 'scim_token_created',
        details: { scim_token_id: id, description: 'Entra', expires_at: expect.any(String) },
      },
      { ...about, type: 'scim_token_revoked', details: { scim_token_id: id } },
    ]);
    const everything = JSON.stringify(await rows(app.dataSource, 'SELECT * FROM audit_events'));
    expect(everything).not.toContain(token.slice('svc_scim_'.length));
  });

  it.each([
    ['no description', {}],
    ['an empty one', { description: ' ' }],
    ['one of 257 characters', { description: 'x'.repeat(257) }],
    ['one of two lines', { description: 'a\nb' }],
    ['one that is no text', { description: 1 }],
    ['no days', { description: 'x', expires_in_days: 0 }],
    ['366 days', { description: 'x', expires_in_days: 366 }],
    ['half a day', { description: 'x', expires_in_days: 0.5 }],
    ['days in words', { description: 'x', expires_in_days: '90' }],
    ['a token of their choice', { description: 'x', token: 'svc_scim_mine' }],
  ])('is refused with %s', async (_, body) => {
    const answer = await orgApi(ada, 'POST', '/scim-tokens', body);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });

  it('may have a description of 256 characters', async () => {
    const description = '𝄞'.repeat(256);
    expect(await created(ada, { description })).toMatchObject({ description });
  });
});

describe('revoking a SCIM token', () => {
  it('20 admins who revoke one at once: one 204, 19 times 404, one audit row', async () => {
    const { id } = await created(ada);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => orgApi(ada, 'DELETE', `/scim-tokens/${id}`)),
    );
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual([204, ...Array<number>(19).fill(404)]);
    expect((await auditOfToken(id)).map(({ type }) => type)).toEqual([
      'scim_token_created',
      'scim_token_revoked',
    ]);
  });

  it('"another organization\'s, an expired and an unknown one are 404 alike"', async () => {
    const { id } = await created(ada);
    const expired = await created(ada);
    await rows(app.dataSource, 'UPDATE scim_tokens SET expires_at = now() WHERE id = $1', [
      expired.id,
    ]);
    const attempts = [
      await orgApi(eve, 'DELETE', `/scim-tokens/${id}`),
      await orgApi(ada, 'DELETE', `/scim-tokens/${expired.id}`),
      await orgApi(ada, 'DELETE', `/scim-tokens/${randomUUID()}`),
      await orgApi(ada, 'DELETE', '/scim-tokens/none'),
    ];
    expect(attempts.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    expect(new Set(attempts.map(({ json }) => json.detail)).size).toBe(1);
    expect(await authenticate(id)).toBeUndefined();
    expect(await listed(ada)).toContainEqual(expect.objectContaining({ id }));
  });
});

describe('a presented SCIM token', () => {
  it('authenticates its organization until it is revoked or expires, and not a moment longer', async () => {
    const revoked = await created(ada);
    const expired = await created(ada);
    const [org] = await rows<{ org_id: string }>(
      app.dataSource,
      `SELECT org_id FROM users WHERE email = 'ada@tokens.example'`,
    );
    expect(await authenticate(revoked.token)).toEqual({ id: revoked.id, orgId: org?.org_id });
    await orgApi(ada, 'DELETE', `/scim-tokens/${revoked.id}`);
    expect(await authenticate(revoked.token)).toBeUndefined();
    expect(await authenticate(expired.token)).toBeDefined();
    await rows(app.dataSource, 'UPDATE scim_tokens SET expires_at = now() WHERE id = $1', [
      expired.id,
    ]);
    expect(await authenticate(expired.token)).toBeUndefined();
    expect(await authenticate(`${expired.token}x`)).toBeUndefined();
  });

  it('records its use once a minute, for any number of uses at once', async () => {
    const { id, token } = await created(ada);
    const used = async () => {
      const [row] = await rows<{ last_used_at: Date | null; xmin: string }>(
        app.dataSource,
        'SELECT last_used_at, xmin::text FROM scim_tokens WHERE id = $1',
        [id],
      );
      return row;
    };
    const parallel = await Promise.all(Array.from({ length: 20 }, () => authenticate(token)));
    expect(parallel.every((one) => one?.id === id)).toBe(true);
    const first = await used();
    expect(first?.last_used_at).toBeInstanceOf(Date);
    await authenticate(token);
    expect(await used()).toEqual(first);
    await rows(
      app.dataSource,
      `UPDATE scim_tokens SET last_used_at = now() - interval '61 seconds' WHERE id = $1`,
      [id],
    );
    await authenticate(token);
    expect((await used())?.last_used_at?.getTime()).toBeGreaterThan(Date.now() - 30_000);
  });

  it('waits for no lock: it is accepted while a transaction holds its row', async () => {
    const { id, token } = await created(ada);
    await app.dataSource.transaction(async (tx) => {
      await tx.query('SELECT FROM scim_tokens WHERE id = $1 FOR UPDATE', [id]);
      expect(await authenticate(token)).toMatchObject({ id });
    });
  });
});

describe('permission to manage SCIM tokens', () => {
  const PATHS = [
    ['POST', '/scim-tokens'],
    ['GET', '/scim-tokens'],
    ['DELETE', `/scim-tokens/${randomUUID()}`],
  ] as const;

  it('is denied without a session: 401; to a user who is not an admin: 403 admin_required', async () => {
    for (const [method, path] of PATHS) {
      const body = method === 'POST' ? { description: 'x' } : undefined;
      expect((await orgApi(app.client(), method, path, body)).status).toBe(401);
      const answer = await orgApi(bob, method, path, body);
      expect([answer.status, answer.json.code]).toEqual([403, 'admin_required']);
    }
  });

  it('is denied to an admin without an organization, or with only a sign-in upstream', async () => {
    const oauth = new OauthRows(app.dataSource);
    const person = await oauth.user({ organization: false, admin: true });
    const bootstrap = await oauth.session(await oauth.user({ admin: true }), {
      level: 'bootstrap',
    });
    for (const [token, code] of [
      [(await oauth.session(person)).token, 'admin_required'],
      [bootstrap.token, 'hardware_required'],
    ] as const) {
      const headers = { authorization: `Bearer ${token}` };
      const options = { headers, address: newAddress() };
      const answer = await app.client().get('/api/v1/org/scim-tokens', options);
      expect([answer.status, answer.json.code]).toEqual([403, code]);
    }
  });

  it('is granted to svc-cli with svc:admin for an admin, and to no other token of any client', async () => {
    const oauth = new OauthRows(app.dataSource);
    const admin = await oauth.user({ admin: true });
    const dpop = await DpopKey.generate();
    const path = '/api/v1/org/scim-tokens';
    const ask = async (token: string) =>
      app.client().post(
        path,
        { description: 'from a terminal' },
        {
          headers: {
            authorization: `DPoP ${token}`,
            dpop: await dpop.proof('POST', app.baseUrl + path, token),
            origin: '',
          },
          address: newAddress(),
        },
      );
    const { jkt } = dpop;
    const payload = { scope: 'openid svc:admin', jkt };
    expect((await ask(await oauth.token(admin, { payload }))).status).toBe(201);
    const narrow = await ask(await oauth.token(admin, { payload: { jkt } }));
    expect([narrow.status, narrow.json.code]).toEqual([403, 'insufficient_scope']);
    const member = await ask(await oauth.token(await oauth.user(), { payload }));
    expect([member.status, member.json.code]).toEqual([403, 'admin_required']);
    const foreign = await oauth.token(admin, { payload, clientId: await oauth.client() });
    expect((await ask(foreign)).status).toBe(401);
  });

  it('is granted to an admin with a cookie only from a page of the service', async () => {
    const answer = await ada.post(
      '/api/v1/org/scim-tokens',
      { description: 'x' },
      { headers: { origin: 'https://evil.example' }, address: newAddress() },
    );
    expect([answer.status, answer.json.code]).toEqual([403, 'invalid_origin']);
  });

  it('is denied to an admin who is demoted between admission and execution', async () => {
    const { client } = await app.enrolled('carol@demoted.example');
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(
      `UPDATE users SET is_org_admin = false WHERE email = 'carol@demoted.example'`,
    );
    const asked = orgApi(client, 'POST', '/scim-tokens', { description: 'too late' });
    await untilWaiting(app.dataSource, 1);
    await holder.commitTransaction();
    await holder.release();
    const answer = await asked;
    expect([answer.status, answer.json.code]).toEqual([403, 'admin_required']);
    expect(await count(app.dataSource, `scim_tokens WHERE description = 'too late'`)).toBe(0);
  });
});
