import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { DpopKey } from '../../support/dpop-key.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const ACTS = [
  'promote',
  'demote',
  'deactivate',
  'activate',
  'revoke-credentials',
  'remove',
] as const;

let app: TestApp;
let oauth: OauthRows;
beforeAll(async () => {
  app = await startTestApp();
  oauth = new OauthRows(app.dataSource);
});
afterAll(() => app.close());

let organizations = 0;

/** Creates an organization with ada as its admin and bob as a member. Each has a key. */
async function organization() {
  organizations += 1;
  const domain = `members-${organizations}.example`;
  const { client: ada } = await app.enrolled(`ada@${domain}`);
  const { client: bob, key } = await app.enrolled(`bob@${domain}`);
  const ids = { ada: await idOf(app, `ada@${domain}`), bob: await idOf(app, `bob@${domain}`) };
  return { domain, ada, bob, key, ids };
}

const act = (browser: Client, id: string, name: string) =>
  orgApi(browser, 'POST', `/members/${id}/${name}`);

const userRow = async (id: string) => {
  const [row] = await rows<{ active: boolean; is_org_admin: boolean; keys: number }>(
    app.dataSource,
    `SELECT active, is_org_admin,
            (SELECT count(*)::int FROM authenticators k WHERE k.user_id = u.id) AS keys
     FROM users u WHERE id = $1`,
    [id],
  );
  return row;
};

const adminEvents = (subject: string) =>
  rows<{ type: string; actor_id: string; details: Record<string, unknown> }>(
    app.dataSource,
    `SELECT type, actor_id, details FROM audit_events
     WHERE subject_id = $1 AND class = 'admin' ORDER BY id`,
    [subject],
  );

describe('the members of an organization', () => {
  it('are visible to its admin, without members of another organization', async () => {
    const { ada, domain, ids } = await organization();
    await organization();
    const page = (await orgApi(ada, 'GET', '/members')).json;
    expect(page).toEqual({
      members: [
        {
          id: ids.ada,
          email: `ada@${domain}`,
          name: expect.any(String),
          is_org_admin: true,
          active: true,
          scim_managed: false,
          keys: 1,
          created_at: expect.stringMatching(/Z$/),
          key_models: [null], // null, because no table of models has the model of the test's key
          last_used_at: expect.stringMatching(/Z$/),
          twin_of: [],
          twins: [],
          linked_to: [],
          taken_over_at: null,
          withheld_address: null,
          shared_address: null,
        },
        expect.objectContaining({ id: ids.bob, is_org_admin: false }),
      ],
      complete: true,
      next: null,
    });
  });

  it('are paged, each member once', async () => {
    const { ada, domain } = await organization();
    for (let n = 0; n < 5; n += 1) await addMember(app, `ada@${domain}`, `person${n}@${domain}`);
    const seen: string[] = [];
    let after = '';
    for (let pages = 0; pages < 4; pages += 1) {
      const query = `limit=2${after && `&after=${after}`}`;
      const { members, next } = (await orgApi(ada, 'GET', `/members?${query}`)).json;
      seen.push(...members.map(({ id }: { id: string }) => id));
      after = next as string;
    }
    expect(after).toBeNull();
    expect([seen.length, new Set(seen).size]).toEqual([7, 7]);
  });

  it.each(['after=x', 'limit=0', 'limit=201', 'limit=-1', 'limit=1.5'])(
    'are refused with %s',
    async (query) => {
      const { ada } = await organization();
      const answer = await orgApi(ada, 'GET', `/members?${query}`);
      expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
    },
  );
});

describe('an action of an admin', () => {
  it('promotes and demotes, with effect at once', async () => {
    const { ada, bob, ids } = await organization();
    expect((await orgApi(bob, 'GET', '/members')).status).toBe(403);
    const promoted = await act(ada, ids.bob, 'promote');
    expect([promoted.status, promoted.json.is_org_admin]).toEqual([200, true]);
    expect((await orgApi(bob, 'GET', '/members')).status).toBe(200);
    const demoted = await act(ada, ids.bob, 'demote');
    expect([demoted.status, demoted.json.is_org_admin]).toEqual([200, false]);
    const refused = await orgApi(bob, 'GET', '/members');
    expect([refused.status, refused.json.code]).toEqual([403, 'admin_required']);
  });

  it('deactivates: sessions and certificates end, the keys stay, and no login until the activation', async () => {
    const { ada, bob, key, ids } = await organization();
    const issued = await bob.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    expect(issued.status).toBe(200);
    const answer = await act(ada, ids.bob, 'deactivate');
    expect([answer.status, answer.json]).toEqual([
      200,
      expect.objectContaining({ active: false, keys: 1 }),
    ]);
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect(
      await rows(
        app.dataSource,
        'SELECT revoked_by, revoke_reason FROM ssh_certificates WHERE serial = $1',
        [issued.json.serial],
      ),
    ).toEqual([{ revoked_by: ids.ada, revoke_reason: 'deactivated by an admin' }]);
    const again = app.client();
    expect((await again.logIn(key)).status).toBe(403);
    expect((await act(ada, ids.bob, 'activate')).json.active).toBe(true);
    expect((await again.logIn(key)).status).toBe(200);
  });

  it('revokes credentials: keys, sessions and certificates are deleted, and the account enrolls again', async () => {
    const { ada, bob, key, ids, domain } = await organization();
    const issued = await bob.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const answer = await act(ada, ids.bob, 'revoke-credentials');
    expect([answer.status, answer.json]).toEqual([
      200,
      expect.objectContaining({ id: ids.bob, active: true, keys: 0 }),
    ]);
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect((await app.client().logIn(key)).status).toBe(400);
    expect(
      await rows(app.dataSource, 'SELECT revoked_by FROM ssh_certificates WHERE serial = $1', [
        issued.json.serial,
      ]),
    ).toEqual([{ revoked_by: ids.ada }]);
    await app.enrolled(`bob@${domain}`);
    expect(await userRow(ids.bob)).toEqual({ active: true, is_org_admin: false, keys: 1 });
  });

  it('removes: the account, its keys and its tokens are deleted', async () => {
    const { ada, bob, ids } = await organization();
    const answer = await act(ada, ids.bob, 'remove');
    expect([answer.status, answer.text]).toEqual([204, '']);
    expect(await userRow(ids.bob)).toBeUndefined();
    expect((await bob.get('/v1/keys')).status).toBe(401);
    expect((await act(ada, ids.bob, 'remove')).status).toBe(404);
  });

  it('is audited with its admin, the ended access and its member, and an action without effect is not', async () => {
    const { ada, ids, domain } = await organization();
    for (const name of ['promote', 'promote', 'demote', 'demote', 'activate']) {
      expect((await act(ada, ids.bob, name)).status).toBe(200);
    }
    for (const name of ['revoke-credentials', 'deactivate', 'activate', 'remove']) {
      await act(ada, ids.bob, name);
    }
    const about = { actor_id: ids.ada };
    const email = `bob@${domain}`;
    expect(await adminEvents(ids.bob)).toEqual([
      { ...about, type: 'admin_promote', details: { email } },
      { ...about, type: 'admin_demote', details: { email } },
      {
        ...about,
        type: 'admin_revoke_credentials',
        details: { email, sessions: 1, certificates: 0, keys: 1 },
      },
      { ...about, type: 'admin_deactivate', details: { email, sessions: 0, certificates: 0 } },
      { ...about, type: 'admin_activate', details: { email } },
      { ...about, type: 'admin_remove_user', details: { email, sessions: 0, certificates: 0 } },
    ]);
  });
});

describe('permission for actions of an admin', () => {
  it('is limited to admins: members are 403 admin_required, and requests without a session 401', async () => {
    const { ada, bob, ids } = await organization();
    for (const name of ACTS) {
      const answer = await act(bob, ids.ada, name);
      expect([name, answer.status, answer.json.code]).toEqual([name, 403, 'admin_required']);
      expect((await act(app.client(), ids.ada, name)).status).toBe(401);
    }
    expect((await orgApi(app.client(), 'GET', '/members')).status).toBe(401);
    expect((await orgApi(ada, 'GET', '/members')).json.members).toHaveLength(2);
  });

  it('ends at the organization: an admin of another one gets 404, and nothing happens', async () => {
    const { ids } = await organization();
    const { ada: eve } = await organization();
    const before = await userRow(ids.bob);
    for (const name of ACTS) {
      for (const id of [ids.bob, randomUUID(), 'nobody']) {
        const answer = await act(eve, id, name);
        expect([name, answer.status, answer.json.code]).toEqual([name, 404, 'not_found']);
      }
    }
    expect(await userRow(ids.bob)).toEqual(before);
  });

  it('covers svc-cli with svc:admin, for an admin', async () => {
    const admin = await oauth.user({ admin: true });
    const dpop = await DpopKey.generate();
    const path = '/api/v1/org/members';
    const ask = async (token: string) =>
      app.client().get(path, {
        headers: {
          authorization: `DPoP ${token}`,
          dpop: await dpop.proof('GET', app.baseUrl + path, token),
        },
        address: newAddress(),
      });
    const { jkt } = dpop;
    const payload = { scope: 'openid svc:admin', jkt };
    expect((await ask(await oauth.token(admin, { payload }))).status).toBe(200);
    expect((await ask(await oauth.token(admin, { payload: { jkt } }))).status).toBe(403);
  });
});

describe("an admin's own account", () => {
  it.each(ACTS)('cannot be changed by that admin: %s is 409', async (name) => {
    const { ada, ids } = await organization();
    const takesAdmin = ['demote', 'deactivate', 'remove'].includes(name);
    const alone = await act(ada, ids.ada, name);
    expect([alone.status, alone.json.code]).toEqual([
      409,
      takesAdmin ? 'last_admin' : 'own_account',
    ]);
    await act(ada, ids.bob, 'promote');
    const beside = await act(ada, ids.ada.toUpperCase(), name);
    expect([beside.status, beside.json.code]).toEqual([409, 'own_account']);
    expect(await userRow(ids.ada)).toEqual({ active: true, is_org_admin: true, keys: 1 });
  });
});

describe('two admins at once', () => {
  it.each(['demote', 'deactivate', 'remove', 'revoke-credentials'] as const)(
    'who %s each other, 20 times in parallel, leave at least one admin',
    async (name) => {
      const { ada, bob, ids } = await organization();
      await act(ada, ids.bob, 'promote');
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          n % 2 === 0 ? act(ada, ids.bob, name) : act(bob, ids.ada, name),
        ),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status >= 500)).toEqual([]);
      expect(statuses.some((status) => status < 300)).toBe(true);
      const left = [await userRow(ids.ada), await userRow(ids.bob)];
      const admins = left.filter((user) => user?.is_org_admin && user.active);
      expect(admins).toHaveLength(name === 'revoke-credentials' ? 2 : 1);
    },
  );

  it('three who demote one another in a circle leave at least one, without a deadlock', async () => {
    const { ada, bob, ids, domain } = await organization();
    const { client: cleo } = await app.enrolled(`cleo@${domain}`);
    const cleoId = await idOf(app, `cleo@${domain}`);
    for (const id of [ids.bob, cleoId]) await act(ada, id, 'promote');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => [
        act(ada, ids.bob, 'demote'),
        act(bob, cleoId, 'demote'),
        act(cleo, ids.ada, 'demote'),
      ]).flat(),
    );
    expect(answers.map(({ status }) => status).filter((status) => status >= 500)).toEqual([]);
    expect(
      await count(app.dataSource, 'users WHERE is_org_admin AND active AND email LIKE $1', [
        `%@${domain}`,
      ]),
    ).toBeGreaterThan(0);
  });
});
