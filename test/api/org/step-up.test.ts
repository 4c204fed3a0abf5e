import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { DpopKey } from '../../support/dpop-key.js';
import { touchedAgo as backdateTouch } from '../../support/keys.js';
import { OauthRows } from '../../support/oauth-rows.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { count, rows } from '../../support/rows.js';

let app: TestApp;
let ada: EnrolledUser;
let memberId: string;
let applicationId: string;
beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled('ada@step-up.example');
  memberId = await addMember(app, 'ada@step-up.example', 'bob@step-up.example');
  const made = await ada.client.post('/api/v1/applications', {
    name: 'Shop',
    type: 'web',
    redirect_uris: ['https://shop.example/callback'],
  });
  applicationId = made.json.client_id as string;
});
afterAll(() => app.close());

const touchedAgo = (email: string, seconds: number) => backdateTouch(app, email, seconds);

const send = (browser: Client, method: string, path: string, body?: unknown): Promise<Answer> =>
  browser.send(method, path, { address: newAddress(), ...(body === undefined ? {} : { body }) });

const auditRows = () => count(app.dataSource, 'audit_events');

const secretId = async () => {
  const { json } = await send(ada.client, 'GET', `/api/v1/applications/${applicationId}/secrets`);
  return json.secrets[0].id as string;
};

describe('an action that needs a touch of the last 5 minutes', () => {
  it.each(['promote', 'demote', 'deactivate', 'activate', 'revoke-credentials', 'remove'])(
    '10.10 is refused with the challenge of a step-up: %s of a member',
    async (act) => {
      await touchedAgo('ada@step-up.example', 301);
      const before = await auditRows();
      const answer = await orgApi(ada.client, 'POST', `/members/${memberId}/${act}`);
      expect([answer.status, answer.json.code]).toEqual([401, 'insufficient_user_authentication']);
      expect(answer.headers.get('content-type')).toContain('application/problem+json');
      expect(answer.headers.get('www-authenticate')).toMatch(
        /^Bearer error="insufficient_user_authentication", error_description="[^"]+", max_age="300", resource_metadata="/,
      );
      expect(await auditRows()).toBe(before);
    },
  );

  it('10.10 is refused where it creates a SCIM token, or changes the secrets of an application', async () => {
    const id = await secretId();
    await touchedAgo('ada@step-up.example', 301);
    const secrets = `/api/v1/applications/${applicationId}/secrets`;
    const before = await auditRows();
    const answers = [
      await orgApi(ada.client, 'POST', '/scim-tokens', { description: 'Okta' }),
      await send(ada.client, 'POST', secrets, {}),
      await send(ada.client, 'DELETE', `${secrets}/${id}`),
    ];
    for (const { status, headers } of answers) {
      expect([status, headers.get('www-authenticate')]).toEqual([
        401,
        expect.stringContaining('max_age="300"'),
      ]);
    }
    expect(await auditRows()).toBe(before);
  });

  it('10.10 continues after a step-up, in the same session', async () => {
    await touchedAgo('ada@step-up.example', 301);
    const refused = await orgApi(ada.client, 'POST', `/members/${memberId}/promote`);
    expect(refused.status).toBe(401);
    const cookie = ada.client.cookie('svc_session');
    expect((await ada.client.logIn(ada.key)).status).toBe(200);
    expect(ada.client.cookie('svc_session')).toBe(cookie);
    const answer = await orgApi(ada.client, 'POST', `/members/${memberId}/promote`);
    expect([answer.status, answer.json.is_org_admin]).toEqual([200, true]);
  });

  it('10.10 is allowed up to 5 minutes after the touch', async () => {
    await touchedAgo('ada@step-up.example', 290);
    const answer = await orgApi(ada.client, 'POST', `/members/${memberId}/demote`);
    expect(answer.status).toBe(200);
  });

  it('10.10 checks the rights first: a member who is not an admin is not asked for a touch', async () => {
    const { client: eve } = await app.enrolled('eve@step-up.example');
    await touchedAgo('eve@step-up.example', 301);
    const answer = await orgApi(eve, 'POST', `/members/${memberId}/demote`);
    expect([answer.status, answer.json.code]).toEqual([403, 'admin_required']);
  });
});

describe('an action that needs no recent touch', () => {
  it('10.10 is every read, and the end of a SCIM token', async () => {
    await touchedAgo('ada@step-up.example', 0);
    const made = await orgApi(ada.client, 'POST', '/scim-tokens', { description: 'Entra' });
    await touchedAgo('ada@step-up.example', 3600);
    for (const path of ['/members', '/scim-tokens', '/audit-events']) {
      expect([path, (await orgApi(ada.client, 'GET', path)).status]).toEqual([path, 200]);
    }
    const ended = await orgApi(ada.client, 'DELETE', `/scim-tokens/${made.json.id as string}`);
    expect(ended.status).toBe(204);
  });
});

describe('a token of svc-cli', () => {
  it('10.10 needs a touch in its own session, and is challenged under its own scheme', async () => {
    const oauth = new OauthRows(app.dataSource);
    const [key] = await rows<{ id: string }>(
      app.dataSource,
      `SELECT k.id FROM authenticators k JOIN users u ON u.id = k.user_id WHERE u.email = $1`,
      ['ada@step-up.example'],
    );
    const person = {
      id: await idOf(app, 'ada@step-up.example'),
      email: 'ada@step-up.example',
      orgId: null,
      keyId: key?.id ?? '',
    };
    const session = await oauth.session(person, { clientId: 'svc-cli' });
    const dpop = await DpopKey.generate();
    const payload = { scope: 'svc:admin', jkt: dpop.jkt };
    const token = await oauth.token(person, { session, payload });
    await rows(
      app.dataSource,
      "UPDATE sessions SET auth_time = now() - interval '301 s' WHERE id = $1",
      [session.id],
    );
    const path = `/api/v1/org/members/${memberId}/demote`;
    const ask = async () =>
      app.client().send('POST', path, {
        headers: {
          authorization: `DPoP ${token}`,
          dpop: await dpop.proof('POST', app.baseUrl + path, token),
        },
      });
    const refused = await ask();
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toMatch(
      /^DPoP error="insufficient_user_authentication", .*max_age="300", algs="ES256/,
    );
    await rows(app.dataSource, 'UPDATE sessions SET auth_time = now() WHERE id = $1', [session.id]);
    expect((await ask()).status).toBe(200);
  });
});
