import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { rows } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

const DOMAIN = 'names.example';
const ADMIN = `admin@${DOMAIN}`;
const ADA = { name: 'Ada Lovelace', given_name: 'Ada', family_name: 'Lovelace' };

describe('the name of a user who signed in, as SCIM shows it', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  const says = new Map<string, object>([[ADMIN, ADA]]);
  beforeAll(async () => {
    app = await startTestApp({ claims: (email) => says.get(email) ?? {} });
    organization = await foundOrganization(app, DOMAIN);
  });
  afterAll(() => app.close());

  const found = async (email: string) => {
    const filter = encodeURIComponent(`userName eq "${email}"`);
    return (await organization.scim('GET', `/Users?filter=${filter}`)).json.Resources[0];
  };

  it('10.19 O19: has the givenName and familyName of the identity provider, and can be filtered by them', async () => {
    expect(await found(ADMIN)).toMatchObject({
      displayName: 'Ada Lovelace',
      name: { formatted: 'Ada Lovelace', givenName: 'Ada', familyName: 'Lovelace' },
      emails: [{ value: ADMIN }],
    });
    const filter = encodeURIComponent('name.familyName eq "lovelace"');
    const list = await organization.scim('GET', `/Users?filter=${filter}`);
    expect(list.json.totalResults).toBe(1);
  });

  it('10.19 O19: follows the provider at a later sign-in, under a new version, and keeps names that the provider omits', async () => {
    const before = await found(ADMIN);
    await app.client().signIn(ADMIN);
    // equal names are no change of the resource
    expect((await found(ADMIN)).meta).toEqual(before.meta);
    says.set(ADMIN, { ...ADA, name: 'Ada King', family_name: 'King', given_name: undefined });
    await app.client().signIn(ADMIN);
    const after = await found(ADMIN);
    expect(after.name).toEqual({ formatted: 'Ada King', givenName: 'Ada', familyName: 'King' });
    expect(after.meta.version).not.toBe(before.meta.version);
  });

  it('10.19 O19: stays with the user when SCIM begins to manage the user, and no sign-in overwrites it afterwards', async () => {
    const { id } = await found(ADMIN);
    await organization.scim('PATCH', `/Users/${id}`, {
      Operations: [{ op: 'replace', path: 'name.familyName', value: 'Byron' }],
    });
    says.set(ADMIN, { name: 'Not Ada', given_name: 'Not', family_name: 'Her' });
    await app.client().signIn(ADMIN);
    const now = await found(ADMIN);
    expect(now).toMatchObject({
      displayName: 'Ada King',
      name: { givenName: 'Ada', familyName: 'Byron' },
    });
    expect(await rows(app.dataSource, 'SELECT name FROM users WHERE id = $1', [id])).toEqual([
      { name: 'Ada King' },
    ]);
  });

  it('10.19 O19: of a user that SCIM created comes from SCIM, not from the provider', async () => {
    const email = `grace@${DOMAIN}`;
    const name = { givenName: 'Grace', familyName: 'Hopper' };
    await organization.scim('POST', '/Users', { userName: email, name });
    says.set(email, { name: 'Someone Else', given_name: 'Someone', family_name: 'Else' });
    await app.enrolled(email);
    expect((await found(email)).name).toEqual(name);
  });

  it('10.19 O19: is one clean line within the limit, also where the provider sends more', async () => {
    const email = `bob@open.${DOMAIN}`;
    says.set(email, { given_name: `B\nob\u202e${'x'.repeat(500)}`, family_name: 42 });
    await app.enrolled(email);
    const [user] = await rows<{ given_name: string; family_name: string | null }>(
      app.dataSource,
      'SELECT given_name, family_name FROM users WHERE email = $1',
      [email],
    );
    expect(user?.given_name).toMatch(/^B ob x{195}$/);
    expect(user?.family_name).toBeNull();
  });
});
