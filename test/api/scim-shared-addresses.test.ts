import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Answer } from '../support/client.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { count, rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const PATCH_OP = 'urn:ietf:params:scim:api:messages:2.0:PatchOp';
const DOMAIN = 'shared.example';

describe('two users of SCIM with one primary address', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, DOMAIN);
  });
  afterAll(() => app.close());

  const scim = (method: string, path: string, body?: unknown) =>
    organization.scim(method, path, body);
  const newEmail = () => `${randomUUID().slice(0, 13)}@${DOMAIN}`;
  /** Creates a user with an e-mail and with a `userName` that is not an address. */
  const userWith = async (email: string) => {
    const answer = await scim('POST', '/Users', bodyWith(email));
    expect(answer.status).toBe(201);
    return answer.json as { id: string; userName: string; emails: unknown };
  };
  const bodyWith = (email: string, userName = randomUUID() as string) => ({
    userName,
    emails: [{ value: email, type: 'work', primary: true }],
  });
  const patch = (id: string, ...operations: object[]) =>
    scim('PATCH', `/Users/${id}`, { schemas: [PATCH_OP], Operations: operations });
  const emailOf = async (id: string) => {
    const [row] = await rows<{ email: string | null }>(
      app.dataSource,
      'SELECT email FROM users WHERE id = $1',
      [id],
    );
    return row?.email ?? null;
  };
  const lastDetails = async (id: string) => {
    const [row] = await rows<{ details: Record<string, unknown> }>(
      app.dataSource,
      'SELECT details FROM audit_events WHERE subject_id = $1 ORDER BY created_at DESC LIMIT 1',
      [id],
    );
    return row?.details;
  };
  /** Creates two users with one e-mail. The service gives it to the first user alone. */
  async function pair() {
    const email = newEmail();
    const first = await userWith(email);
    const second = await userWith(email);
    return { email, first, second };
  }

  it('10.19 E29: both are created, GET shows the address of both, and nobody is found by it at a sign-in', async () => {
    const { email, first, second } = await pair();
    expect([await emailOf(first.id), await emailOf(second.id)]).toEqual([email, null]);
    for (const { id } of [first, second]) {
      expect((await scim('GET', `/Users/${id}`)).json.emails).toEqual([
        { value: email, type: 'work', primary: true },
      ]);
    }
    expect(await lastDetails(second.id)).toMatchObject({ operation: 'create', email_taken: true });
    expect((await app.client().signIn(email)).status).toBe(403);
    const [refusal] = await rows<{ details: { records: string[] } }>(
      app.dataSource,
      `SELECT details FROM audit_events WHERE type = 'identity_bind_refused' AND details ->> 'email' = $1`,
      [email],
    );
    expect(refusal?.details.records.toSorted()).toEqual([first.id, second.id].toSorted());
  });

  it('10.19 E29: 20 users created at once with one address all exist, and one of them has it', async () => {
    const email = newEmail();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => scim('POST', '/Users', bodyWith(email))),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 201));
    expect(await count(app.dataSource, 'users WHERE email = $1', [email])).toBe(1);
  });

  it('10.19 E29: a taken userName is 409, on POST, PUT and PATCH', async () => {
    const [email, other] = [newEmail(), newEmail()];
    await scim('POST', '/Users', { userName: email });
    const { id } = await userWith(other);
    const answers: Answer[] = [
      await scim('POST', '/Users', { userName: email.toUpperCase() }),
      await scim('PUT', `/Users/${id}`, bodyWith(other, email)),
      await patch(id, { op: 'replace', path: 'userName', value: email }),
    ];
    for (const { status, json } of answers) {
      expect([status, json.scimType]).toEqual([409, 'uniqueness']);
    }
    expect(await emailOf(id)).toBe(other);
  });

  it('10.19 E29: neither the removal of the first nor a write without the address gives it to the second', async () => {
    const { email, first, second } = await pair();
    expect((await scim('DELETE', `/Users/${first.id}`)).status).toBe(204);
    expect(await emailOf(second.id)).toBeNull();
    const writes = [
      await patch(second.id, { op: 'replace', path: 'title', value: email }),
      await patch(second.id, { op: 'replace', path: 'active', value: 'False' }),
      await patch(second.id, { op: 'replace', value: { active: true, displayName: email } }),
    ];
    expect(writes.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await emailOf(second.id)).toBeNull();
    expect((await app.client().signIn(email)).status).toBe(403);
  });

  it.each<[string, (id: string, email: string) => Promise<Answer>]>([
    ['PUT', (id, email) => scim('PUT', `/Users/${id}`, bodyWith(email))],
    [
      'PATCH of the address by its type',
      (id, email) =>
        patch(id, { op: 'Replace', path: 'emails[type eq "work"].value', value: email }),
    ],
    [
      'PATCH without a path',
      (id, email) => patch(id, { op: 'add', value: { emails: [{ value: email.toUpperCase() }] } }),
    ],
    [
      'PATCH of the userName',
      (id, email) => patch(id, { op: 'replace', path: 'userName', value: email }),
    ],
  ])(
    '10.19 E29: a %s that names the free address gives it to the user, audited',
    async (_, write) => {
      const { email, first, second } = await pair();
      await scim('DELETE', `/Users/${first.id}`);
      expect((await write(second.id, email)).status).toBe(200);
      expect(await emailOf(second.id)).toBe(email);
      expect(await lastDetails(second.id)).toMatchObject({
        operation: 'update',
        email,
        previous_email: null,
        tombstone_lifted: true,
      });
      const browser = app.client();
      expect((await browser.signIn(email)).status).toBe(200);
      expect((await browser.enroll(app.newKey())).status).toBe(200);
      expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [second.id])).toBe(1);
    },
  );

  it('10.19 E29: a write that names the address while the first has it does not move it', async () => {
    const { email, first, second } = await pair();
    const answer = await scim('PUT', `/Users/${second.id}`, bodyWith(email, second.userName));
    expect(answer.status).toBe(200);
    expect([await emailOf(first.id), await emailOf(second.id)]).toEqual([email, null]);
  });

  it('10.19 E29: a user who changes to an address of another user loses the own one, and all access issued under it', async () => {
    const [own, taken] = [newEmail(), newEmail()];
    const { id } = await userWith(own);
    await userWith(taken);
    const { client } = await app.enrolled(own);
    const answer = await patch(id, {
      op: 'replace',
      path: 'emails[type eq "work"].value',
      value: taken,
    });
    expect(answer.status).toBe(200);
    expect(await emailOf(id)).toBeNull();
    expect((await client.get('/v1/keys', { address: newAddress() })).status).toBe(401);
  });

  it('10.19 E29: of two users who change to one address at once one has it, and both get a response', async () => {
    const email = newEmail();
    const ids = [(await userWith(newEmail())).id, (await userWith(newEmail())).id];
    // A third transaction has inserted a user with the address, so that both requests wait for it.
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query(
      'INSERT INTO users (id, org_id, email) SELECT $1, org_id, $2 FROM users WHERE id = $3',
      [randomUUID(), email, ids[0]],
    );
    const writes = ids.map((id) =>
      patch(id, { op: 'replace', path: 'emails[type eq "work"].value', value: email }),
    );
    await untilWaiting(app.dataSource, 2);
    await holder.rollbackTransaction();
    await holder.release();
    expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([200, 200]);
    const held = await Promise.all(ids.map(emailOf));
    expect(held.toSorted()).toEqual([email, null].toSorted());
  });
});
