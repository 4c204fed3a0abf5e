import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TenantWork } from '../../../src/platform/database/tenants/tenant-work.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

let organizations = 0;

/** Creates an organization with an admin and a member. */
async function organization() {
  organizations += 1;
  const domain = `acting-${organizations}.example`;
  const { client: admin } = await app.enrolled(`ada@${domain}`);
  const adminId = await idOf(app, `ada@${domain}`);
  const memberId = await addMember(app, `ada@${domain}`, `bob@${domain}`);
  return { domain, admin, adminId, memberId };
}

const run = (statement: string, parameters: unknown[]) =>
  rows(app.dataSource, statement, parameters);

/** SQL statements that end the rights of an admin, whose id is the parameter. */
const ENDS = {
  'whose address left the domains': `UPDATE users SET email = 'ada.' || substr(id::text, 1, 8) || '@left.example' WHERE id = $1`,
  'who was demoted': 'UPDATE users SET is_org_admin = false WHERE id = $1',
  'whose session ended': 'DELETE FROM sessions WHERE user_id = $1',
};

describe('an admin whose address left the domains of the organization', () => {
  it.each([
    ['an address in a domain without an owner', ENDS['whose address left the domains']],
    ['no address', 'UPDATE users SET email = NULL WHERE id = $1'],
    [
      'a domain that is not verified any more',
      `UPDATE organization_domains SET verified_at = NULL
       WHERE org_id = (SELECT org_id FROM users WHERE id = $1)`,
    ],
  ])('10.6 is not an admin for %s: nothing is read and nothing is changed', async (_, change) => {
    const { admin, adminId, memberId } = await organization();
    const made = await orgApi(admin, 'POST', '/scim-tokens', { description: 'Okta' });
    await run(change, [adminId]);
    const answers = [
      await orgApi(admin, 'GET', '/audit-events'),
      await orgApi(admin, 'GET', '/members'),
      await orgApi(admin, 'GET', '/scim-tokens'),
      await orgApi(admin, 'POST', '/scim-tokens', { description: 'Entra' }),
      await orgApi(admin, 'DELETE', `/scim-tokens/${made.json.id as string}`),
      await orgApi(admin, 'POST', `/members/${memberId}/promote`),
      await orgApi(admin, 'POST', `/members/${memberId}/revoke-credentials`),
    ];
    for (const { status, json } of answers) {
      expect([status, json.code]).toEqual([403, 'admin_required']);
    }
    expect(await count(app.dataSource, 'users WHERE id = $1 AND is_org_admin', [memberId])).toBe(0);
  });

  it('10.6 does not manage the applications of other users', async () => {
    const { admin, adminId, domain } = await organization();
    const { client: carol } = await app.enrolled(`carol@${domain}`);
    const body = { name: 'Shop', type: 'spa', redirect_uris: ['https://shop.example/'] };
    const { json } = await carol.post('/api/v1/applications', body);
    const path = `/api/v1/applications/${json.client_id as string}`;
    expect((await admin.get(path)).status).toBe(200);
    await run(ENDS['whose address left the domains'], [adminId]);
    expect((await admin.get(path)).status).toBe(404);
    expect((await admin.send('DELETE', path)).status).toBe(404);
  });
});

describe('an admin who is demoted between the admission of a request and its execution', () => {
  /**
   * Ends the rights of the admin in a transaction, starts a request that waits for the row of the
   * admin, and commits. Returns the response.
   */
  async function overtaken(
    { adminId, end }: { readonly adminId: string; readonly end: string },
    request: () => Promise<{ readonly status: number }>,
  ) {
    const other = app.dataSource.createQueryRunner();
    await other.startTransaction();
    await other.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [adminId]);
    await other.query(end, [adminId]);
    const answer = request();
    await untilWaiting(app.dataSource, 1);
    await other.commitTransaction();
    await other.release();
    return answer;
  }

  describe.each(Object.entries(ENDS))('one %s', (_, end) => {
    it('10.6 changes no member', async () => {
      const { admin, adminId, memberId } = await organization();
      const answer = await overtaken({ adminId, end }, () =>
        orgApi(admin, 'POST', `/members/${memberId}/promote`),
      );
      expect(answer.status).toBe(403);
      expect(await count(app.dataSource, 'users WHERE id = $1 AND is_org_admin', [memberId])).toBe(
        0,
      );
    });

    it('10.6 creates no SCIM token', async () => {
      const { admin, adminId } = await organization();
      const answer = await overtaken({ adminId, end }, () =>
        orgApi(admin, 'POST', '/scim-tokens', { description: 'Okta' }),
      );
      expect(answer.status).toBe(403);
      expect(await count(app.dataSource, 'scim_tokens WHERE created_by = $1', [adminId])).toBe(0);
    });

    it("10.6 changes no member's application", async () => {
      const { admin, adminId, domain } = await organization();
      const { client: carol } = await app.enrolled(`carol@${domain}`);
      const body = { name: 'Shop', type: 'spa', redirect_uris: ['https://shop.example/'] };
      const { json } = await carol.post('/api/v1/applications', body);
      const path = `/api/v1/applications/${json.client_id as string}`;
      const answer = await overtaken({ adminId, end }, () =>
        admin.send('DELETE', path, { address: newAddress() }),
      );
      expect(answer.status).toBe(404);
      expect((await carol.get(path)).status).toBe(200);
    });
  });
});

describe('the export of the audit log (NDJSON)', () => {
  const EVENTS = 1800;

  /**
   * Exports all events of an organization as NDJSON, and runs an action after the first batch was
   * read.
   */
  async function exportWhile(admin: Client, adminId: string, meanwhile: () => Promise<unknown>) {
    await run(
      `INSERT INTO audit_events (id, type, class, org_id, details)
       SELECT gen_random_uuid(), 'logout', 'auth', u.org_id, jsonb_build_object('text', repeat('x', 200))
       FROM users u, generate_series(1, $2) WHERE u.id = $1`,
      [adminId, EVENTS],
    );
    const work = app.nest.get(TenantWork, { strict: false });
    const original = work.costly.bind(work);
    let batches = -1; // the first call reads the filter, and the batches follow
    work.costly = async (...parameters) => {
      const batch = await original(...parameters);
      batches += 1;
      if (batches === 1) await meanwhile();
      return batch;
    };
    const ask = admin.get('/api/v1/org/audit-events', {
      headers: { accept: 'application/x-ndjson' },
      address: newAddress(),
    });
    const answer = await ask.catch((error: unknown) => ({ status: 0, text: String(error) }));
    work.costly = original;
    return { batches, status: answer.status, lines: answer.text.split('\n').length };
  }

  it('10.6 is complete while its reader stays an admin', async () => {
    const { admin, adminId } = await organization();
    const whole = await exportWhile(admin, adminId, async () => undefined);
    expect(whole).toMatchObject({ status: 200, batches: 4 });
    expect(whole.lines).toBeGreaterThan(EVENTS);
  });

  it.each(Object.entries(ENDS))(
    '10.6 is aborted with its connection for an admin %s, and reads no further batch',
    async (_, end) => {
      const { admin, adminId } = await organization();
      const cut = await exportWhile(admin, adminId, () => run(end, [adminId]));
      expect(cut).toMatchObject({ status: 0, batches: 1 });
    },
  );
});

describe('an organization whose only admin loses the rights', () => {
  it('10.6 has no admin: a listed user becomes its admin at the next login', async () => {
    const listed = await startTestApp({
      environment: { SVC_BOOTSTRAP_ADMINS: 'ada@listed.example,bob@listed.example' },
    });
    try {
      await listed.enrolled('ada@listed.example');
      const { client: bob, key } = await listed.enrolled('bob@listed.example');
      expect((await orgApi(bob, 'GET', '/members')).status).toBe(403);
      await rows(
        listed.dataSource,
        "UPDATE users SET email = 'ada@left.example' WHERE email = 'ada@listed.example'",
      );
      await bob.logIn(key);
      expect((await orgApi(bob, 'GET', '/members')).status).toBe(200);
    } finally {
      await listed.close();
    }
  });
});

describe('a member who calls the organization API', () => {
  const refusals = (email: string) =>
    rows<{ class: string; org: boolean; details: object; request_id: string }>(
      app.dataSource,
      `SELECT e.class, e.org_id = u.org_id AS org, e.details, e.request_id
       FROM audit_events e JOIN users u ON u.id = e.actor_id
       WHERE e.type = 'admin_access_refused' AND u.email = $1`,
      [email],
    );

  it('10.6 is audited with the requested route, once a minute for any number of requests', async () => {
    const { domain, memberId } = await organization();
    const email = `eve@${domain}`;
    const { client: eve } = await app.enrolled(email);
    const path = `/members/${memberId}/remove`;
    const first = await orgApi(eve, 'POST', path);
    expect(first.status).toBe(403);
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => orgApi(eve, 'GET', '/audit-events')),
    );
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403, 403]);
    expect(await refusals(email)).toEqual([
      {
        class: 'auth',
        org: true,
        details: { code: 'admin_required', method: 'POST', path: `/api/v1/org${path}` },
        request_id: first.headers.get('x-fapi-interaction-id'),
      },
    ]);
    await rows(
      app.dataSource,
      "UPDATE audit_events SET created_at = created_at - interval '61 s' WHERE type = 'admin_access_refused'",
    );
    await orgApi(eve, 'GET', '/members');
    expect(await refusals(email)).toHaveLength(2);
  });

  it('10.6 is named in the log line', async () => {
    const { domain } = await organization();
    const { client: eve } = await app.enrolled(`eve@${domain}`);
    const before = app.log.length;
    expect((await orgApi(eve, 'GET', '/members')).status).toBe(403);
    const id = await idOf(app, `eve@${domain}`);
    expect(app.log.slice(before).filter((line) => line.includes(id))).not.toEqual([]);
  });

  it('10.6 leaves no row where an admin only lacks a recent touch', async () => {
    const { domain, admin, adminId, memberId } = await organization();
    await run("UPDATE sessions SET auth_time = now() - interval '1 h' WHERE user_id = $1", [
      adminId,
    ]);
    expect((await orgApi(admin, 'POST', `/members/${memberId}/promote`)).status).toBe(401);
    expect(await refusals(`ada@${domain}`)).toEqual([]);
  });
});
