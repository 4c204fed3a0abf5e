import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resourceOwnerOfSession } from '../../../src/domain/oauth/grants/grants.repository.js';
import { OrganizationsRepository } from '../../../src/domain/organizations/organizations.repository.js';
import { deprovision as deprovisioning } from '../../support/deprovisioning.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import type { Answer, Client } from '../../support/client.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { count, rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const ORIGIN = { requestId: 'request-1', ip: '192.0.2.7', userAgent: 'test' };

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());

/**
 * Founds the organization of a domain and creates its first SCIM token. Returns the client of its
 * founder.
 */
async function provisioned(domain: string): Promise<Client> {
  const { client } = await app.enrolled(`founder@${domain}`);
  const answer = await orgApi(client, 'POST', '/scim-tokens', { description: 'Okta' });
  expect(answer.status).toBe(201);
  return client;
}

/** Removes or deactivates a user by the function that SCIM requests call. */
async function deprovision(act: 'remove' | 'deactivate', userId: string): Promise<void> {
  const service = deprovisioning(app);
  const audit = { type: 'scim_operation', actorId: null, origin: ORIGIN } as const;
  const about = { userId, reason: 'user deleted by SCIM', revokedBy: 'scim', audit };
  await app.dataSource.transaction((tx) => service[act](tx, about));
}

async function orgOf(domain: string): Promise<string> {
  const [row] = await rows<{ org_id: string }>(
    app.dataSource,
    'SELECT org_id FROM organization_domains WHERE domain = $1',
    [domain],
  );
  return row?.org_id ?? '';
}

const people = (domain: string) => count(app.dataSource, `users WHERE email LIKE '%@${domain}'`);

/**
 * Signs a user in and tries to enroll a key. Returns the refusal of the sign-in, or the response to
 * the enrollment.
 */
async function comesToEnroll(email: string): Promise<Answer> {
  const browser = app.client();
  const page = await browser.signIn(email);
  return page.status === 200 ? browser.enroll(app.newKey()) : page;
}

const admins = async (domain: string) =>
  (
    await rows<{ email: string }>(
      app.dataSource,
      `SELECT email FROM users WHERE email LIKE '%@${domain}' AND is_org_admin`,
    )
  ).map(({ email }) => email);

describe('an organization that SCIM provisions', () => {
  it('creates no user at a sign-in, and enrolls only the users of SCIM', async () => {
    await provisioned('alone.example');
    expect((await comesToEnroll('stranger@alone.example')).status).toBe(403);
    await addMember(app, 'founder@alone.example', 'grace@alone.example');
    await addMember(app, 'founder@alone.example', 'older@alone.example', { scimManaged: false });
    expect((await comesToEnroll('grace@alone.example')).status).toBe(200);
    const older = await comesToEnroll('older@alone.example');
    expect([older.status, older.json.code]).toEqual([403, 'enrollment_refused']);
    expect(await people('alone.example')).toBe(3);
  });

  it('keeps users who had a key before its first token', async () => {
    const founder = await provisioned('before.example');
    expect((await founder.get('/v1/keys')).status).toBe(200);
  });

  it('creates no user after its first token: a concurrent enrollment waits, and is refused', async () => {
    await app.enrolled('founder@moment.example');
    const browser = app.client();
    await browser.signIn('early@moment.example');
    const { state, publicKey } = (await browser.post('/enroll/webauthn/start', {})).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const token = app.dataSource.createQueryRunner();
    await token.startTransaction();
    await app.nest
      .get(OrganizationsRepository, { strict: false })
      .beginProvisioning(token.manager, await orgOf('moment.example'));
    const completed = browser.post('/enroll/webauthn/complete', { state, credential });
    await untilWaiting(app.dataSource, 1);
    await token.commitTransaction();
    await token.release();
    const answer = await completed;
    expect([answer.status, answer.json.code]).toEqual([403, 'enrollment_refused']);
    expect(await people('moment.example')).toBe(1);
  });

  it('does not admit again a user that SCIM deleted, with a sign-in before or after', async () => {
    await provisioned('gone.example');
    const id = await addMember(app, 'founder@gone.example', 'grace@gone.example');
    const before = app.client();
    await before.signIn('grace@gone.example');
    await deprovision('remove', id);
    expect((await before.post('/enroll/webauthn/start', {})).status).toBe(401);
    const after = await comesToEnroll('grace@gone.example');
    expect(after.status).toBe(403);
    expect(await people('gone.example')).toBe(1);
  });

  it('has no admin after SCIM removes the last one, logs that, and promotes no later user', async () => {
    await provisioned('headless.example');
    await addMember(app, 'founder@headless.example', 'next@headless.example');
    await deprovision('remove', await idOf(app, 'founder@headless.example'));
    expect(app.log.filter((line) => line.includes('left without an active admin'))).toHaveLength(1);
    expect((await comesToEnroll('next@headless.example')).status).toBe(200);
    expect(await admins('headless.example')).toEqual([]);
  });
});

describe('an organization that SCIM does not provision', () => {
  it.each(['remove', 'deactivate'] as const)(
    'whose only admin is gone (%s) promotes no later user',
    async (act) => {
      const domain = `${act}d.example`;
      await app.enrolled(`founder@${domain}`);
      await deprovision(act, await idOf(app, `founder@${domain}`));
      await app.enrolled(`next@${domain}`);
      expect(await admins(domain)).toEqual(act === 'remove' ? [] : [`founder@${domain}`]);
      const next = await idOf(app, `next@${domain}`);
      expect(await count(app.dataSource, 'users WHERE id = $1 AND is_org_admin', [next])).toBe(0);
    },
  );

  it('of two last admins who are removed at once logs the loss of the last one once', async () => {
    const lines = () => app.log.filter((line) => line.includes('left without an active admin'));
    await app.enrolled('one@pair.example');
    const other = await addMember(app, 'one@pair.example', 'two@pair.example');
    await rows(app.dataSource, 'UPDATE users SET is_org_admin = true WHERE id = $1', [other]);
    const before = lines().length;
    await Promise.all([
      deprovision('remove', await idOf(app, 'one@pair.example')),
      deprovision('remove', other),
    ]);
    expect(lines()).toHaveLength(before + 1);
  });
});

describe('a user whose e-mail is in a domain that the organization does not own', () => {
  it('signs in as the user of that other identity, never as its member', async () => {
    await provisioned('owner.example');
    const id = await addMember(app, 'founder@owner.example', 'grace@not-owned.example');
    const answer = await comesToEnroll('grace@not-owned.example');
    expect(answer.status).toBe(200);
    expect(await count(app.dataSource, 'authenticators WHERE user_id = $1', [id])).toBe(0);
    expect(await count(app.dataSource, 'identities WHERE user_id = $1', [id])).toBe(0);
  });

  it('gets no token or certificate, with a key and a session', async () => {
    const oauth = new OauthRows(app.dataSource);
    const person = await oauth.user();
    await rows(
      app.dataSource,
      `UPDATE users SET email = 'ada@unproven.example', scim_managed = true WHERE id = $1`,
      [person.id],
    );
    const session = await oauth.session(person);
    const headers = { authorization: `Bearer ${session.token}`, origin: '' };
    const certificate = await app
      .client()
      .post('/v1/credentials/ssh', { public_key: newPublicKeyLine() }, { headers });
    expect(certificate.status).toBe(403);
    const { manager } = app.dataSource;
    expect(await resourceOwnerOfSession(manager, session.id)).toBeUndefined();
    await rows(
      app.dataSource,
      `INSERT INTO organization_domains (org_id, domain, verified_at) VALUES ($1, 'unproven.example', now())`,
      [person.orgId],
    );
    expect(await resourceOwnerOfSession(manager, session.id)).toMatchObject({
      userId: person.id,
    });
  });
});
