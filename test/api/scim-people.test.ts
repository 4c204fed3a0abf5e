import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { UsersRepository } from '../../src/domain/directory/users.repository.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

describe('users of SCIM beside users who signed in', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  const emails = new Map<string, string>();
  beforeAll(async () => {
    app = await startTestApp({
      claims: (email) => (emails.has(email) ? { email: emails.get(email) } : {}),
    });
    // Its admin signed in before the first SCIM token existed. The provider may change the e-mail
    // address of the admin.
    organization = await foundOrganization(app, 'people.example');
  });
  afterAll(() => app.close());

  it('a userName that is the e-mail of another record is taken, in any case', async () => {
    await organization.scim('POST', '/Users', { userName: 'record@people.example' });
    const answer = await organization.scim('POST', '/Users', { userName: 'RECORD@people.example' });
    expect([answer.status, answer.json.scimType]).toEqual([409, 'uniqueness']);
  });

  it('an e-mail that is the userName of another user creates no user, and a change to it is not followed', async () => {
    // Sets the e-mail to another address by SQL, because SCIM would give a user with such a
    // `userName` the same e-mail.
    const taken = 'name@people.example';
    await organization.scim('POST', '/Users', { userName: taken });
    await app.dataSource.query('UPDATE users SET email = $2 WHERE email = $1', [
      taken,
      'else@people.example',
    ]);
    const [org] = await rows<{ org_id: string }>(
      app.dataSource,
      'SELECT org_id FROM users WHERE email = $1',
      ['admin@people.example'],
    );
    const users = app.nest.get(UsersRepository, { strict: false });
    const person = { id: randomUUID(), orgId: org?.org_id ?? '', email: taken, name: null };
    expect(await users.create(app.dataSource.manager, person)).toBe(false);

    emails.set('admin@people.example', taken);
    const signedIn = await app.client().signIn('admin@people.example');
    expect(signedIn.status).toBe(200);
    const [admin] = await rows(
      app.dataSource,
      'SELECT email FROM users WHERE is_org_admin AND org_id = $1',
      [org?.org_id],
    );
    expect(admin).toEqual({ email: 'admin@people.example' });
  });

  it('a user from a sign-in is visible to SCIM, and managed by SCIM after its first change', async () => {
    const filter = encodeURIComponent('userName eq "admin@people.example"');
    const found = (await organization.scim('GET', `/Users?filter=${filter}`)).json.Resources[0];
    expect(found).toMatchObject({
      userName: 'admin@people.example',
      active: true,
      emails: [{ value: 'admin@people.example', type: 'work', primary: true }],
    });
    const changed = await organization.scim('PATCH', `/Users/${found.id}`, {
      Operations: [{ op: 'add', path: 'title', value: 'Founder' }],
    });
    expect(changed.json).toMatchObject({
      userName: 'admin@people.example',
      title: 'Founder',
      emails: [{ value: 'admin@people.example', primary: true }],
    });
    const [row] = await rows(
      app.dataSource,
      'SELECT scim_managed, email, is_org_admin FROM users WHERE id = $1',
      [found.id],
    );
    expect(row).toEqual({
      scim_managed: true,
      email: 'admin@people.example',
      is_org_admin: true,
    });
  });
});
