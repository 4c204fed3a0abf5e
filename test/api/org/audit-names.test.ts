import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { postForm } from '../../support/oauth-flow.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';
import { newPublicKeyLine } from '../../support/ssh-public-keys.js';

const ADA = 'ada@names.example';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

interface Named {
  readonly type: string;
  readonly actor_id: string | null;
  readonly subject_id: string | null;
  readonly actor_email: string | null;
  readonly subject_email: string | null;
  readonly client_name: string | null;
}

let app: TestApp;
let ada: Client;
beforeAll(async () => {
  app = await startTestApp();
  ({ client: ada } = await app.enrolled(ADA));
});
afterAll(() => app.close());

/** Returns the newest event that matches a query. Throws if there is none. */
async function newest(query: string): Promise<Named> {
  const { status, json } = await orgApi(ada, 'GET', `/audit-events?limit=1&${query}`);
  expect([status, json.events]).toEqual([200, [expect.anything()]]);
  return json.events[0] as Named;
}

describe('an audit event', () => {
  it('10.29 shows the addresses at that time, also of removed users', async () => {
    const bob = await addMember(app, ADA, 'bob@names.example');
    await orgApi(ada, 'POST', `/members/${bob}/promote`);
    const named = { actor_email: ADA, subject_email: 'bob@names.example', client_name: null };
    const promoted = () => newest(`type=admin_promote&user=${bob}`);
    expect(await promoted()).toMatchObject(named);
    await rows(app.dataSource, "UPDATE users SET email = 'robert@names.example' WHERE id = $1", [
      bob,
    ]);
    expect(await promoted()).toMatchObject(named);
    await orgApi(ada, 'POST', `/members/${bob}/demote`);
    expect(await newest(`type=admin_demote&user=${bob}`)).toMatchObject({
      subject_email: 'robert@names.example',
    });
    await orgApi(ada, 'POST', `/members/${bob}/remove`);
    expect(await promoted()).toMatchObject(named);
    expect(await newest(`type=admin_remove_user&user=${bob}`)).toMatchObject({
      actor_email: ADA,
      subject_email: 'robert@names.example',
    });
  });

  it('10.29 shows the name of the application at that time, also of a removed one', async () => {
    const body = { name: 'Shop', type: 'web', redirect_uris: ['https://shop.example/'] };
    const { json } = await ada.post('/api/v1/applications', body, { address: newAddress() });
    const path = `/api/v1/applications/${json.client_id as string}`;
    await ada.send('PATCH', path, { address: newAddress(), body: { name: 'Store' } });
    await ada.send('POST', `${path}/secrets`, { address: newAddress(), body: {} });
    await ada.send('DELETE', path, { address: newAddress() });
    const nameIn = async (type: string) => (await newest(`type=${type}`)).client_name;
    expect(await nameIn('oauth_client_registered')).toBe('Shop');
    expect(await nameIn('oauth_client_updated')).toBe('Store');
    expect(await nameIn('oauth_secret_added')).toBe('Store');
    expect(await nameIn('oauth_client_deleted')).toBe('Store');
  });

  it('10.29 of a login, a device, a token and a certificate is named by every statement that writes it', async () => {
    const { json: codes } = await postForm(app, '/oauth/device', {
      client_id: 'svc-cli',
      scope: 'openid svc:credentials',
    });
    await ada.post('/device/approve', { user_code: codes.user_code }, { address: newAddress() });
    const { status } = await postForm(app, '/oauth/token', {
      grant_type: DEVICE_GRANT,
      device_code: codes.device_code as string,
      client_id: 'svc-cli',
    });
    expect(status).toBe(200);
    await ada.post('/v1/credentials/ssh', { public_key: newPublicKeyLine() });
    const [cli] = await rows<{ name: string }>(
      app.dataSource,
      "SELECT metadata ->> 'client_name' AS name FROM oauth_clients WHERE id = 'svc-cli'",
    );
    const person = { subject_email: ADA, actor_email: ADA };
    expect(cli?.name).toEqual(expect.any(String));
    for (const type of ['device_approved', 'oauth_token_issued']) {
      expect(await newest(`type=${type}`)).toMatchObject({ ...person, client_name: cli?.name });
    }
    for (const type of ['enrollment', 'ssh_credential']) {
      expect(await newest(`type=${type}`)).toMatchObject({ ...person, client_name: null });
    }
  });

  it('10.29 is named in the export too', async () => {
    const headers = { accept: 'application/x-ndjson' };
    const options = { headers, address: newAddress() };
    const { text } = await ada.get('/api/v1/org/audit-events?type=enrollment', options);
    expect(JSON.parse(text.split('\n')[0] ?? '')).toMatchObject({
      subject_id: await idOf(app, ADA),
      subject_email: ADA,
    });
  });
});

describe('a search of the audit log', () => {
  it.each([
    'type=no_such_type',
    'type=LOGOUT',
    'type=',
    'typ=logout',
    'cursor=x',
    'email=bob',
    'email=',
    'email=bob%00@names.example',
    'user=',
    'from=',
    'limit=ten',
    'user=1&user=2',
  ])(
    '10.29 with %s is refused: an unknown parameter, type or value does not give an empty log',
    async (query) => {
      for (const accept of ['application/json', 'application/x-ndjson']) {
        const options = { headers: { accept }, address: newAddress() };
        const answer = await ada.get(`/api/v1/org/audit-events?${query}`, options);
        expect([answer.status, answer.json.code]).toEqual([400, 'invalid_request']);
      }
    },
  );
});
