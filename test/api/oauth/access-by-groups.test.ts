import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assign, drain, newGroup, provision, setRule } from '../../support/access-targets.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { newAddress } from '../../support/client.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { CALLBACK, newCodeFields, postForm } from '../../support/oauth-flow.js';
import { count, rows } from '../../support/rows.js';
import { foundOrganization } from '../../support/scim-organization.js';

const DOMAIN = 'by-groups.example';

/** The private key of the SSH authority. Every process on one database needs the same one. */
const { privateKey } = generateKeyPairSync('ed25519');
const SSH_KEY = {
  SVC_SSH_CA_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
};

describe('SVC_ACCESS_BY_GROUPS', () => {
  let database: TestDatabase;
  let app: TestApp;
  let application: Application;
  const people = new Map<string, EnrolledUser>();
  const email = (name: string) => `${name}@${DOMAIN}`;

  beforeAll(async () => {
    database = await createTestDatabase();
    app = await startTestApp({ database, environment: SSH_KEY });
    const organization = await foundOrganization(app, DOMAIN);
    const ids: Record<string, string> = {};
    for (const name of ['grouped', 'direct']) {
      ids[name] = await provision(organization, email(name));
      people.set(name, await app.enrolled(email(name)));
    }
    const group = await newGroup(organization, 'Staff', [ids['grouped'] ?? '']);
    application = await addApplication(
      app,
      {
        client_name: 'Wiki',
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
      { owner: `admin@${DOMAIN}` },
    );
    await setRule(app, application.clientId, { access: 'assigned' });
    await assign(app, application.clientId, { groupId: group.id });
    await assign(app, application.clientId, { email: email('direct') });
    await drain(app);
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
  });

  async function tokenOf(name: string): Promise<string> {
    const { client } = people.get(name) as EnrolledUser;
    const answer = await postForm(app, '/oauth/token', {
      ...(await newCodeFields(client, application.clientId)),
      client_id: application.clientId,
      client_secret: application.clientSecret,
    });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.json.access_token as string;
  }
  const userinfo = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const options = { address: newAddress(), headers };
    return (await app.client().get('/oauth/userinfo', options)).status;
  };
  /**
   * Starts a second replica with this value of the variable, and stops it. A restart with the value
   * has the same effect on the database.
   */
  async function restart(byGroups: 'true' | 'false'): Promise<void> {
    const environment = { ...SSH_KEY, SVC_ACCESS_BY_GROUPS: byGroups };
    const replica = await startTestApp({ database, environment });
    await replica.close();
  }
  const queued = () => count(app.dataSource, 'access_endings');

  it('false ends what a group gave, refuses its members, and leaves assigned people alone', async () => {
    const tokens = { grouped: await tokenOf('grouped'), direct: await tokenOf('direct') };
    await restart('true'); // the value is `true` already, so that nothing ends
    expect([await queued(), await userinfo(tokens.grouped)]).toEqual([0, 200]);

    await restart('false');
    await expect.poll(queued).toBe(0);
    expect([await userinfo(tokens.grouped), await userinfo(tokens.direct)]).toEqual([401, 200]);
    const ended = await rows<{ email: string; details: object }>(
      app.dataSource,
      `SELECT u.email, e.details FROM audit_events e JOIN users u ON u.id = e.subject_id
       WHERE e.type = 'access_ended'`,
    );
    expect(ended).toEqual([
      {
        email: email('grouped'),
        details: {
          target: { kind: 'application', name: 'Wiki', id: application.clientId },
          rule: 'rule',
          grants: 1,
        },
      },
    ]);
    await expect(tokenOf('grouped')).rejects.toThrow('answered 403');
    expect(await userinfo(await tokenOf('direct'))).toBe(200);
  });

  it('true admits the members again, without another act', async () => {
    await restart('false');
    await expect(tokenOf('grouped')).rejects.toThrow('answered 403');
    await restart('true');
    expect(await userinfo(await tokenOf('grouped'))).toBe(200);
  });
});
