import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deprovision } from '../support/deprovisioning.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress } from '../support/client.js';
import { postForm } from '../support/oauth-flow.js';
import { untilWaiting } from '../support/lock-waiters.js';
import { count } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';

describe('changes of the identity provider during other changes', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let people = 0;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'races.example');
  });
  afterAll(() => app.close());

  async function newUser(active = true): Promise<{ id: string; email: string; etag: string }> {
    people += 1;
    const email = `user-${people}@races.example`;
    const { json, headers } = await organization.scim('POST', '/Users', {
      userName: email,
      active,
    });
    return { id: json.id as string, email, etag: headers.get('etag') ?? '' };
  }
  const waiting = () => untilWaiting(app.dataSource, 1);
  const deactivation = (how: string, id: string, email: string) =>
    how === 'PATCH'
      ? organization.scim('PATCH', `/Users/${id}`, {
          Operations: [{ op: 'replace', path: 'active', value: 'False' }],
        })
      : organization.scim('PUT', `/Users/${id}`, { userName: email, active: false });

  it.each(['PATCH', 'PUT'])(
    'active: false by %s takes effect also while an admin activates the user',
    async (how) => {
      const { id, email } = await newUser(false);
      let answer: ReturnType<typeof deactivation> | undefined;
      await app.dataSource.transaction(async (tx) => {
        await deprovision(app).activate(tx, {
          userId: id,
          audit: {
            type: 'admin_activate',
            actorId: id,
            origin: { requestId: 'r', ip: undefined, userAgent: undefined },
            details: {},
          },
        });
        answer = deactivation(how, id, email);
        await waiting();
      });
      expect((await answer)?.json).toMatchObject({ active: false });
      expect(await count(app.dataSource, 'users WHERE id = $1 AND active', [id])).toBe(0);
    },
  );

  it('a response states the current version', async () => {
    const { id, email } = await newUser();
    const changed = await deactivation('PATCH', id, email);
    const found = await organization.scim('GET', `/Users/${id}`);
    expect(changed.headers.get('etag')).toBe(found.headers.get('etag'));
    expect(changed.json).toEqual(found.json);
  });

  it('a change by an admin is a new version', async () => {
    const { id, etag } = await newUser();
    const acted = await organization.admin.client.post(`/api/v1/org/members/${id}/deactivate`);
    expect(acted.status).toBe(200);
    const found = await organization.scim('GET', `/Users/${id}`);
    expect(found.json.active).toBe(false);
    expect(found.headers.get('etag')).not.toBe(etag);
  });

  it('moves between groups and deletions of their members all succeed, in any order', async () => {
    const statuses: number[] = [];
    for (let round = 0; round < 6; round += 1) {
      const four = await Promise.all(Array.from({ length: 4 }, () => newUser()));
      const [a, b, c, d] = four.map(({ id }) => id);
      const member = (id?: string) => ({ value: id });
      const groups = await Promise.all(
        [
          { displayName: `one ${round}`, members: [member(a), member(c)] },
          { displayName: `two ${round}`, members: [member(b), member(d)] },
        ].map((group) => organization.scim('POST', '/Groups', group)),
      );
      const [one, two] = groups.map(({ json }) => json.id as string);
      const move = (group: string | undefined, leaving: unknown[], coming: unknown[]) =>
        organization.scim('PATCH', `/Groups/${group}`, {
          Operations: [
            ...leaving.map((id) => ({ op: 'remove', path: `members[value eq "${String(id)}"]` })),
            { op: 'add', path: 'members', value: coming },
          ],
        });
      const moves = [
        move(one, [a, c], [member(b), member(d)]),
        move(two, [b, d], [member(a), member(c)]),
      ];
      const deletions = four.map(({ id }) => organization.scim('DELETE', `/Users/${id}`));
      statuses.push(...(await Promise.all(deletions)).map(({ status }) => status));
      // A move runs before the deletions (200), or names a user who is deleted already (400).
      const moved = (await Promise.all(moves)).map(({ status }) => status);
      expect(moved.every((status) => status === 200 || status === 400)).toBe(true);
    }
    expect(statuses.filter((status) => status !== 204)).toEqual([]);
    expect(await count(app.dataSource, 'group_members')).toBe(0);
  });

  it('a user who is renamed to a foreign domain gets no secrets, and the user’s applications get no tokens', async () => {
    const { id, email } = await newUser();
    const { client, key } = await app.enrolled(email);
    const service = await addApplication(
      app,
      {
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_post',
      },
      { owner: email },
    );
    const ask = () =>
      postForm(app, '/oauth/token', {
        grant_type: 'client_credentials',
        client_id: service.clientId,
        client_secret: service.clientSecret,
      });
    expect((await ask()).status).toBe(200);
    await organization.scim('PATCH', `/Users/${id}`, {
      Operations: [{ op: 'replace', path: 'userName', value: `user-${people}@foreign.example` }],
    });
    expect((await ask()).status).not.toBe(200);
    await client.logIn(key);
    const registered = await client.post(
      '/api/v1/applications',
      { name: 'S', type: 'service' },
      { address: newAddress() },
    );
    expect(registered.status).toBeGreaterThanOrEqual(400);
    expect(await count(app.dataSource, 'oauth_clients WHERE owner_id = $1', [id])).toBe(1);
  });
});
