import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { CALLBACK } from '../support/oauth-flow.js';
import { rows } from '../support/rows.js';

const DOMAIN = 'invisible.example';
const CLIENT = { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'none' };

/**
 * A zero-width space and joiner, a byte order mark, a soft hyphen, characters that change the text
 * direction, and a tag character.
 */
const INVISIBLE = ['200b', '200d', 'feff', '00ad', '200f', '202e', '2066', '061c', 'e0041'].map(
  (code) => String.fromCodePoint(Number.parseInt(code, 16)),
);

describe('a name with an invisible character', () => {
  let app: TestApp;
  let ada: Client;
  let keyId: string;
  beforeAll(async () => {
    app = await startTestApp({ claims: () => ({ name: 'Sa\u200cra \u200fDoe' }) });
    ({ client: ada } = await app.enrolled(`ada@${DOMAIN}`));
    const { json } = await ada.get('/v1/keys');
    keyId = json.keys[0].id as string;
  });
  afterAll(() => app.close());

  const send = (method: string, path: string, body: object, headers = {}) =>
    ada.send(method, path, { address: newAddress(), body, headers });
  const web = (name: string) => ({ name, type: 'web', redirect_uris: [CALLBACK] });

  it('is refused for clients, applications, organizations, keys and SCIM tokens, at every entrance', async () => {
    const made = await send('POST', '/api/v1/applications', web('Orders'));
    expect(made.status).toBe(201);
    const own = await app.client().post('/oauth/register', { ...CLIENT, client_name: 'Orders' });
    const authorization = `Bearer ${own.json.registration_access_token as string}`;
    const entrances: Record<string, (name: string) => Promise<{ status: number; text: string }>> = {
      'POST /oauth/register': (name) =>
        send('POST', '/oauth/register', { ...CLIENT, client_name: name }),
      'PUT /oauth/register/:id': (name) =>
        app.client().send('PUT', `/oauth/register/${own.json.client_id as string}`, {
          address: newAddress(),
          body: { ...CLIENT, client_id: own.json.client_id, client_name: name },
          headers: { authorization, origin: '' },
        }),
      'POST /api/v1/applications': (name) => send('POST', '/api/v1/applications', web(name)),
      'POST /api/v1/applications, a cluster': (name) =>
        send('POST', '/api/v1/applications', {
          name,
          type: 'kubernetes',
          resource: 'https://k.invisible.example',
        }),
      'PATCH /api/v1/applications/:id': (name) =>
        send('PATCH', `/api/v1/applications/${made.json.client_id as string}`, { name }),
      'PATCH /api/v1/org': (name) => send('PATCH', '/api/v1/org', { name }),
      'PATCH /v1/keys/:id': (name) => send('PATCH', `/v1/keys/${keyId}`, { name }),
      'POST /enroll/webauthn/complete': (name) =>
        send('POST', '/enroll/webauthn/complete', { state: 'x', credential: {}, name }),
      'POST /api/v1/org/scim-tokens': (name) =>
        send('POST', '/api/v1/org/scim-tokens', { description: name }),
    };
    const accepted: unknown[] = [];
    for (const [entrance, enter] of Object.entries(entrances)) {
      for (const character of INVISIBLE) {
        const { status, text } = await enter(`Pay${character}roll`);
        if (status !== 400 || !/invisible/.test(text)) {
          accepted.push([entrance, character.codePointAt(0)?.toString(16), status]);
        }
      }
    }
    expect(accepted).toEqual([]);
    expect((await send('PATCH', '/api/v1/org', { name: 'Größe & Söhne 株式会社' })).status).toBe(
      200,
    );
  });

  it('of an earlier release stays in updates that leave it', async () => {
    const old = 'Old\u200bname';
    const made = await send('POST', '/api/v1/applications', web('Older'));
    const id = made.json.client_id as string;
    const own = await app.client().post('/oauth/register', { ...CLIENT, client_name: 'Older' });
    const clientId = own.json.client_id as string;
    const rename = `UPDATE oauth_clients SET metadata = jsonb_set(metadata, '{client_name}', to_jsonb($2::text)) WHERE id = $1`;
    for (const one of [id, clientId]) await app.dataSource.query(rename, [one, old]);
    const path = `/api/v1/applications/${id}`;
    const changed = await send('PATCH', path, { name: old, require_pkce: true });
    expect([changed.status, changed.json]).toMatchObject([200, { name: old, require_pkce: true }]);
    const update = await app.client().send('PUT', `/oauth/register/${clientId}`, {
      address: newAddress(),
      body: {
        ...CLIENT,
        client_id: clientId,
        client_name: old,
        client_uri: 'https://new.example/',
      },
      headers: {
        authorization: `Bearer ${own.json.registration_access_token as string}`,
        origin: '',
      },
    });
    expect([update.status, update.json]).toMatchObject([200, { client_name: old }]);
  });

  it('is kept for people, whose names may need it', async () => {
    const found = await rows(app.dataSource, 'SELECT name FROM users WHERE email = $1', [
      `ada@${DOMAIN}`,
    ]);
    expect(found).toEqual([{ name: 'Sa\u200cra \u200fDoe' }]);
    const made = await send('POST', '/api/v1/org/scim-tokens', { description: 'a test' });
    const user = await app.client().send('POST', '/scim/v2/Users', {
      body: { userName: `sara@${DOMAIN}`, displayName: 'Sa\u200cra' },
      headers: { authorization: `Bearer ${made.json.token as string}`, origin: '' },
    });
    expect([user.status, user.json.displayName]).toEqual([201, 'Sa\u200cra']);
  });
});
