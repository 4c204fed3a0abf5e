import { readFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { createTestDatabase } from '../../support/database.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../../support/scim-organization.js';

let app: TestApp;
/**
 * The claims that the provider sends for a user in place of the usual ones, by the user's e-mail
 * address.
 */
const says = new Map<string, object>();
beforeAll(async () => {
  app = await startTestApp({ claims: (email) => says.get(email) ?? {} });
});
afterAll(() => app.close());

const change = (admin: Client, body: object) => orgApi(admin, 'PATCH', '', body);
const membershipOf = async (admin: Client) =>
  (await orgApi(admin, 'GET', '')).json.membership as string;

/**
 * Returns the class and the details of the events about an admin's changes to the organization's
 * settings.
 */
const changesBy = (email: string) =>
  rows(
    app.dataSource,
    `SELECT e.class, e.details FROM audit_events e JOIN users u ON u.id = e.actor_id
     WHERE e.type = 'org_updated' AND u.email = $1 AND e.org_id = u.org_id ORDER BY e.created_at`,
    [email],
  );

/**
 * Signs a user in and tries to enroll a key. Returns the refusal of the sign-in, or the response to
 * the enrollment.
 */
async function comesToEnroll(email: string): Promise<Answer> {
  const browser = app.client();
  const page = await browser.signIn(email);
  return page.status === 200 ? browser.enroll(app.newKey()) : page;
}

/**
 * Creates an organization that has a SCIM token and that users still join by signing in (`open`).
 */
async function openOrganization(domain: string): Promise<ScimOrganization> {
  const organization = await foundOrganization(app, domain);
  const answer = await change(organization.admin.client, { membership: 'open' });
  expect([answer.status, answer.json.membership]).toEqual([200, 'open']);
  return organization;
}

async function made(organization: ScimOrganization, userName: string): Promise<string> {
  const answer = await organization.scim('POST', '/Users', { userName });
  expect(answer.status).toBe(201);
  return answer.json.id as string;
}

describe('the membership of an organization', () => {
  it('10.25 is open at first, and scim_only from the first SCIM token on, whose response says so', async () => {
    const { client } = await app.enrolled('ada@first.example');
    expect((await orgApi(client, 'GET', '')).json).toEqual({
      name: 'first.example',
      membership: 'open',
      device_grant: true,
      aws_roles: 'any',
    });
    const token = await orgApi(client, 'POST', '/scim-tokens', { description: 'Okta' });
    expect([token.status, token.json.membership]).toEqual([201, 'scim_only']);
    expect(await membershipOf(client)).toBe('scim_only');
    expect((await comesToEnroll('bob@first.example')).status).toBe(403);
  });

  it('10.25 stays as an admin set it when further tokens are created', async () => {
    const { admin } = await openOrganization('further.example');
    const token = await orgApi(admin.client, 'POST', '/scim-tokens', { description: 'Entra' });
    expect([token.status, token.json.membership]).toEqual([201, 'open']);
    expect((await comesToEnroll('bob@further.example')).status).toBe(200);
  });

  it('10.25 is changed either way by an admin, each time with an audit row', async () => {
    const { client } = await app.enrolled('ada@either.example');
    expect((await change(client, { membership: 'scim_only' })).json.membership).toBe('scim_only');
    expect((await comesToEnroll('bob@either.example')).status).toBe(403);
    expect((await change(client, { membership: 'open' })).json.membership).toBe('open');
    // not a change, so that no event is recorded
    expect((await change(client, { membership: 'open' })).status).toBe(200);
    expect((await comesToEnroll('bob@either.example')).status).toBe(200);
    expect(await changesBy('ada@either.example')).toEqual([
      { class: 'admin', details: { membership: { from: 'open', to: 'scim_only' } } },
      { class: 'admin', details: { membership: { from: 'scim_only', to: 'open' } } },
    ]);
  });

  it('10.25 the first token is audited as a change, too', async () => {
    const { admin } = await foundOrganization(app, 'audited.example');
    await orgApi(admin.client, 'POST', '/scim-tokens', { description: 'another' });
    expect(await changesBy('admin@audited.example')).toHaveLength(1);
  });

  it('10.25 of 20 first tokens at once one sets it, and all responses say so', async () => {
    const { client } = await app.enrolled('ada@twenty.example');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        orgApi(client, 'POST', '/scim-tokens', { description: 'one of many' }),
      ),
    );
    expect(new Set(answers.map(({ json }) => json.membership as string))).toEqual(
      new Set(['scim_only']),
    );
    expect(await changesBy('ada@twenty.example')).toHaveLength(1);
  });

  it('10.25 needs a touch of the last 5 minutes to change, and none to read', async () => {
    const { client, key } = await app.enrolled('ada@touch.example');
    await app.dataSource.query(
      `UPDATE sessions SET auth_time = now() - interval '301 seconds'
       WHERE user_id = (SELECT id FROM users WHERE email = 'ada@touch.example')`,
    );
    const refused = await change(client, { membership: 'scim_only' });
    expect([refused.status, refused.json.code]).toEqual([401, 'insufficient_user_authentication']);
    expect(await membershipOf(client)).toBe('open');
    await client.logIn(key);
    expect((await change(client, { membership: 'scim_only' })).status).toBe(200);
  });

  it('10.25 is for admins, and each sees only their own organization', async () => {
    await app.enrolled('ada@admins.example');
    const { client: member } = await app.enrolled('bob@admins.example');
    expect((await orgApi(member, 'GET', '')).status).toBe(403);
    expect((await change(member, { membership: 'open' })).status).toBe(403);
    expect((await app.client().get('/api/v1/org')).status).toBe(401);
    const { client: eve } = await app.enrolled('eve@admins-2.example');
    await change(eve, { name: 'Eve Ltd', membership: 'scim_only' });
    expect((await orgApi(eve, 'GET', '')).json.name).toBe('Eve Ltd');
    expect(
      await rows(app.dataSource, 'SELECT name, membership FROM organizations WHERE name = $1', [
        'admins.example',
      ]),
    ).toEqual([{ name: 'admins.example', membership: 'open' }]);
  });

  it.each([
    { membership: 'closed' },
    { membership: null },
    { name: '' },
    { name: 'two\nlines' },
    { name: 'x'.repeat(257) },
    { owner: 'x' },
  ])('10.25 refuses %j', async (body) => {
    const email = `ada@${randomUUID().slice(0, 8)}.example`;
    const { client } = await app.enrolled(email);
    const answer = await change(client, body);
    expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
  });
});

describe('a user that SCIM removed', () => {
  it('10.25 cannot join an open organization until SCIM creates the user again, and other users can', async () => {
    const organization = await openOrganization('out.example');
    const id = await made(organization, 'bob@out.example');
    const before = app.client();
    await before.signIn('bob@out.example');
    expect((await organization.scim('DELETE', `/Users/${id}`)).status).toBe(204);
    expect((await before.post('/enroll/webauthn/start', {})).status).toBe(401);
    expect((await comesToEnroll('bob@out.example')).status).toBe(403);
    expect((await comesToEnroll('carol@out.example')).status).toBe(200);
    await made(organization, 'bob@out.example');
    expect((await comesToEnroll('bob@out.example')).status).toBe(200);
  });

  it('10.25 cannot join when an admin opens a scim_only organization later', async () => {
    const organization = await foundOrganization(app, 'later.example');
    const id = await made(organization, 'bob@later.example');
    await organization.scim('DELETE', `/Users/${id}`);
    expect((await comesToEnroll('bob@later.example')).status).toBe(403);
    await change(organization.admin.client, { membership: 'open' });
    expect((await comesToEnroll('bob@later.example')).status).toBe(403);
  });

  it('10.25 cannot join with a sign-in from before the user was a user of SCIM', async () => {
    const organization = await openOrganization('pending.example');
    const browser = app.client();
    await browser.signIn('bob@pending.example');
    const { state, publicKey } = (await browser.post('/enroll/webauthn/start', {})).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const id = await made(organization, 'bob@pending.example');
    await organization.scim('DELETE', `/Users/${id}`);
    const answer = await browser.post('/enroll/webauthn/complete', { state, credential });
    expect([answer.status, answer.json.code]).toEqual([403, 'enrollment_refused']);
    expect(await count(app.dataSource, "users WHERE email = 'bob@pending.example'")).toBe(0);
  });

  it('10.25 cannot join with an enrollment that waited for the removal', async () => {
    const organization = await openOrganization('waits.example');
    const browser = app.client();
    await browser.signIn('bob@waits.example');
    const { state, publicKey } = (await browser.post('/enroll/webauthn/start', {})).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const id = await made(organization, 'bob@waits.example');
    // This lock stops the removal at its last step, the audit event, when it has deleted the user.
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    await holder.query('LOCK TABLE audit_events IN SHARE MODE');
    const removal = organization.scim('DELETE', `/Users/${id}`);
    await untilWaiting(app.dataSource, 1);
    const completed = browser.post('/enroll/webauthn/complete', { state, credential });
    await untilWaiting(app.dataSource, 2);
    await holder.rollbackTransaction();
    await holder.release();
    expect((await removal).status).toBe(204);
    const answer = await completed;
    expect([answer.status, answer.json.code]).toEqual([403, 'enrollment_refused']);
  });

  it('10.25 cannot join under another address of the same identity, until SCIM creates the same userName or an admin readmits', async () => {
    const organization = await openOrganization('alias.example');
    const id = await made(organization, 'bob@alias.example');
    await app.enrolled('bob@alias.example');
    await organization.scim('DELETE', `/Users/${id}`);
    says.set('bob@alias.example', { email: 'robert@alias.example' });
    expect((await comesToEnroll('bob@alias.example')).status).toBe(403);
    await made(organization, 'robert@alias.example');
    expect((await comesToEnroll('bob@alias.example')).status).toBe(403);
    const { client } = organization.admin;
    await orgApi(client, 'POST', '/members/readmit', { email: 'bob@alias.example' });
    expect((await comesToEnroll('bob@alias.example')).status).toBe(200);
  });

  it('is not readmitted by an address that another removed user had, too', async () => {
    const organization = await openOrganization('mailbox.example');
    for (const name of ['bob', 'eve']) {
      const userName = `${name}@mailbox.example`;
      const { json } = await organization.scim('POST', '/Users', {
        userName,
        emails: [{ value: 'shared@mailbox.example', type: 'work' }],
      });
      await app.enrolled(userName);
      await organization.scim('DELETE', `/Users/${json.id}`);
    }
    const { client } = organization.admin;
    const readmit = async (email: string) =>
      (await orgApi(client, 'POST', '/members/readmit', { email })).json;
    expect(await readmit('shared@mailbox.example')).toMatchObject({ identities: 0 });
    expect(await readmit('bob@mailbox.example')).toMatchObject({ identities: 1 });
    expect((await comesToEnroll('bob@mailbox.example')).status).toBe(200);
    expect((await comesToEnroll('eve@mailbox.example')).status).toBe(403);
  });

  it('10.25 cannot join under the address that SCIM removed while the user was inactive', async () => {
    const organization = await openOrganization('renamed.example');
    const id = await made(organization, 'bob@renamed.example');
    const patch = (value: object) =>
      organization.scim('PATCH', `/Users/${id}`, { Operations: [{ op: 'replace', value }] });
    await patch({ active: false });
    expect((await patch({ userName: 'bob-old@renamed.example' })).status).toBe(200);
    expect((await comesToEnroll('bob@renamed.example')).status).toBe(403);
    await organization.scim('DELETE', `/Users/${id}`);
    expect((await comesToEnroll('bob@renamed.example')).status).toBe(403);
    expect((await comesToEnroll('bob-old@renamed.example')).status).toBe(403);
  });

  it('10.25 leaves an address that no member gets by a change at the provider', async () => {
    const organization = await openOrganization('heir.example');
    const id = await made(organization, 'bob@heir.example');
    await organization.scim('DELETE', `/Users/${id}`);
    await app.enrolled('eve@heir.example');
    says.set('eve@heir.example', { email: 'bob@heir.example' });
    expect((await app.client().signIn('eve@heir.example')).status).toBe(200);
    expect(await count(app.dataSource, "users WHERE email = 'bob@heir.example'")).toBe(0);
  });

  it('10.25 cannot join after an admin removed the user that SCIM created again: the tombstone was lifted for that user', async () => {
    const organization = await openOrganization('again.example');
    const first = await made(organization, 'bob@again.example');
    await organization.scim('DELETE', `/Users/${first}`);
    const second = await made(organization, 'bob@again.example');
    await orgApi(organization.admin.client, 'POST', `/members/${second}/remove`);
    expect((await comesToEnroll('bob@again.example')).status).toBe(403);
  });

  it('10.25 can join other organizations', async () => {
    const one = await openOrganization('one-org.example');
    const other = await openOrganization('other-org.example');
    // an address in a domain of another organization
    const id = await made(one, 'bob@other-org.example');
    await one.scim('DELETE', `/Users/${id}`);
    expect((await comesToEnroll('bob@other-org.example')).status).toBe(200);
    expect(await membershipOf(other.admin.client)).toBe('open');
  });
});

describe('the migration', () => {
  it('10.25 turns the flag into the mode, and earlier removals by SCIM into tombstones', async () => {
    const database = await createTestDatabase();
    const dataSource = new DataSource({ type: 'postgres', url: database.url });
    await dataSource.initialize();
    try {
      await dataSource.query(
        `DROP TRIGGER organizations_membership ON organizations; DROP FUNCTION organizations_membership;
         DROP TABLE scim_tombstones, scim_removed_identities; ALTER TABLE organizations DROP COLUMN membership`,
      );
      const [marked, open] = [randomUUID(), randomUUID()];
      for (const [id, provisioned] of [
        [marked, true],
        [open, false],
      ] as const) {
        await dataSource.query(
          "INSERT INTO organizations (id, name, provisioned) VALUES ($1, 'x', $2)",
          [id, provisioned],
        );
      }
      await dataSource.query('INSERT INTO users (id, org_id, email) VALUES ($1, $2, $3)', [
        randomUUID(),
        marked,
        'back@marked.example',
      ]);
      for (const [operation, email] of [
        ['delete', 'gone@marked.example'],
        ['delete', 'gone@marked.example'],
        ['delete', 'back@marked.example'],
        ['create', 'new@marked.example'],
        ['delete', null],
      ]) {
        await dataSource.query(
          `INSERT INTO audit_events (id, type, class, org_id, details) VALUES ($1, 'scim_operation', 'admin', $2, $3)`,
          [randomUUID(), marked, { operation, resource_type: 'User', email }],
        );
      }
      for (const name of ['1763784009100-membership', '1763784009110-earlier-tombstones']) {
        const file = new URL(`../../../migrations/${name}.sql`, import.meta.url);
        await dataSource.query(await readFile(file, 'utf8'));
      }
      const memberships = () =>
        rows(dataSource, 'SELECT membership, provisioned FROM organizations ORDER BY id = $1', [
          marked,
        ]);
      expect(await memberships()).toEqual([
        { membership: 'open', provisioned: false },
        { membership: 'scim_only', provisioned: true },
      ]);
      expect(
        await rows(dataSource, 'SELECT org_id, email, lifted_for FROM scim_tombstones'),
      ).toEqual([{ org_id: marked, email: 'gone@marked.example', lifted_for: null }]);
      // A trigger keeps both columns consistent, because a replica of the previous version sets and
      // reads `provisioned`.
      await dataSource.query('UPDATE organizations SET provisioned = true WHERE id = $1', [open]);
      await dataSource.query(`UPDATE organizations SET membership = 'open' WHERE id = $1`, [
        marked,
      ]);
      expect(await memberships()).toEqual([
        { membership: 'scim_only', provisioned: true },
        { membership: 'open', provisioned: false },
      ]);
    } finally {
      await dataSource.destroy();
      await database.drop();
    }
  });
});

it('10.25 another method at the path is 405, in the format of the API', async () => {
  const { client } = await app.enrolled('ada@methods.example');
  const answer = await client.send('PUT', '/api/v1/org', { address: newAddress(), body: {} });
  expect(answer.status).toBe(405);
  expect(answer.headers.get('content-type')).toContain('application/problem+json');
});
