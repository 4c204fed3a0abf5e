import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deprovision } from '../support/deprovisioning.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { OauthRows, type UserRow } from '../support/oauth-rows.js';
import { count, rows } from '../support/rows.js';
import { atScale } from '../support/scale.js';
import { addTenant } from '../support/scim.js';
import { addMember, orgApi } from '../support/org-api.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const ORIGIN = { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' };
/** The time until a certificate expires, as an interval of PostgreSQL. */
const ENDS = {
  valid: '1 hour',
  'just expired': '-10 minutes',
  'long expired': '-400 days',
} as const;

describe('the certificates of a user whose access ends', () => {
  let app: TestApp;
  let person: UserRow;
  let serial = 1;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    person = await new OauthRows(app.dataSource).user();
  });

  /**
   * Inserts certificates of a user with consecutive serials that expire after an interval. Returns
   * the first serial.
   */
  async function record(userId: string, ends: string, number = 1): Promise<number> {
    const first = serial;
    serial += number;
    await app.dataSource.query(
      `INSERT INTO ssh_certificates (serial, user_id, session_id, key_id, principals, public_key, ca_fingerprint, valid_after, valid_before)
       SELECT n, $3, $4, 'k', '{p}', 'f', 'c', now() - interval '500 days', now() + $5::interval
       FROM generate_series($1::bigint, $2::bigint) n`,
      [first, serial - 1, userId, randomUUID(), ends],
    );
    return first;
  }
  const reasons = async (userId: string) =>
    rows<{ revoke_reason: string | null; revoked_by: string | null }>(
      app.dataSource,
      'SELECT revoke_reason, revoked_by FROM ssh_certificates WHERE user_id = $1 ORDER BY serial',
      [userId],
    );
  const end = (act: 'remove' | 'deactivate' | 'revokeCredentials') =>
    app.dataSource.transaction((tx) =>
      deprovision(app)[act](tx, {
        userId: person.id,
        reason: 'a test',
        revokedBy: 'scim',
        audit: { type: 'scim_operation', actorId: null, origin: ORIGIN },
      }),
    );

  it.each(['remove', 'deactivate', 'revokeCredentials'] as const)(
    '10.words %s revokes each one that is not revoked yet, expired ones too',
    async (act) => {
      const serials = [];
      for (const ends of Object.values(ENDS)) serials.push(await record(person.id, ends));
      await app.dataSource.query(
        `UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'before', revoked_by = 'x' WHERE serial = $1`,
        [await record(person.id, '1 hour')],
      );
      const other = await new OauthRows(app.dataSource).user();
      await record(other.id, '-1 hour');
      // counts only the one that had not expired
      expect(await end(act)).toMatchObject({ certificates: 1 });
      const now = { revoke_reason: 'a test', revoked_by: 'scim' };
      expect(await reasons(person.id)).toEqual([
        now,
        now,
        now,
        { revoke_reason: 'before', revoked_by: 'x' },
      ]);
      expect(await reasons(other.id)).toEqual([{ revoke_reason: null, revoked_by: null }]);
      const answers = await Promise.all(
        serials.map((each) => app.client().get(`/v1/credentials/ssh/krl/${each}`)),
      );
      expect(answers.map(({ json }) => json.revoked as boolean)).toEqual([true, true, true]);
    },
  );

  it('10.words a SCIM delete revokes expired ones, which stay in the list for an hour after their expiry', async () => {
    const tenant = await addTenant(app);
    const made = await tenant.send('POST', '/Users', { userName: `ada@${tenant.domain}` });
    const id = made.json.id as string;
    const justExpired = await record(id, ENDS['just expired']);
    const longExpired = await record(id, ENDS['long expired']);
    expect((await tenant.send('DELETE', `/Users/${id}`)).status).toBe(204);
    expect(await reasons(id)).toEqual([
      { revoke_reason: 'user deleted by SCIM', revoked_by: 'scim' },
      { revoke_reason: 'user deleted by SCIM', revoked_by: 'scim' },
    ]);
    const list = await app
      .client()
      .get('/v1/credentials/ssh/krl', { headers: { accept: 'application/json' } });
    const listed = (list.json.revoked_serials as string[]).map(Number);
    expect(listed).toContain(justExpired);
    expect(listed).not.toContain(longExpired);
  });

  it('10.words a user with very many certificates is removed in statements that each revoke some of them', async () => {
    await record(person.id, '1 hour', 12_345);
    expect(await end('remove')).toMatchObject({ certificates: 12_345 });
    expect(
      await count(app.dataSource, 'ssh_certificates WHERE user_id = $1 AND revoked_at IS NULL', [
        person.id,
      ]),
    ).toBe(0);
  });

  describe('of whom very many have expired', () => {
    const MANY = atScale({ small: 4_000, full: 20_000 });
    const acts = {
      'a SCIM delete': ({ scim }: ScimOrganization, id: string) => scim('DELETE', `/Users/${id}`),
      'a SCIM deactivation': ({ scim }: ScimOrganization, id: string) =>
        scim('PATCH', `/Users/${id}`, {
          schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'],
          Operations: [{ op: 'replace', path: 'active', value: false }],
        }),
      'the deactivation by an admin': ({ admin }: ScimOrganization, id: string) =>
        orgApi(admin.client, 'POST', `/members/${id}/deactivate`),
      'the revocation by an admin': ({ admin }: ScimOrganization, id: string) =>
        orgApi(admin.client, 'POST', `/members/${id}/revoke-credentials`),
      'the removal by an admin': ({ admin }: ScimOrganization, id: string) =>
        orgApi(admin.client, 'POST', `/members/${id}/remove`),
    };
    let organization: ScimOrganization;
    beforeAll(async () => {
      organization = await foundOrganization(app, 'very-many.example');
    });

    it.each(Object.entries(acts))(
      'all are revoked by one request, in one transaction with its event: %s',
      async (name, act) => {
        const email = `${name.replaceAll(' ', '-').toLowerCase()}@very-many.example`;
        const id = await addMember(app, 'admin@very-many.example', email);
        await record(id, ENDS['long expired'], MANY);
        await record(id, ENDS.valid, 3);
        // would be refused after the time limit of a request
        const answer = await act(organization, id);
        expect([200, 204]).toContain(answer.status);
        const transactions = await rows<{ xmin: string; certificates: number; open: number }>(
          app.dataSource,
          `SELECT xmin::text, count(*)::int AS certificates, count(*) FILTER (WHERE revoked_at IS NULL)::int AS open
           FROM ssh_certificates WHERE user_id = $1 GROUP BY xmin::text`,
          [id],
        );
        const events = await rows<{ xmin: string; ended: unknown }>(
          app.dataSource,
          `SELECT xmin::text, details -> 'certificates' AS ended FROM audit_events
           WHERE subject_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`,
          [id],
        );
        expect(transactions).toEqual([{ xmin: events[0]?.xmin, certificates: MANY + 3, open: 0 }]);
        expect(events[0]?.ended).toBe(3); // the event counts only those that had not expired
      },
    );
  });
});
