import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import { CALLBACK, newClientKeys, newPkce } from '../../support/oauth-flow.js';
import { addMember, idOf, orgApi } from '../../support/org-api.js';
import { rows } from '../../support/rows.js';

const API = '/api/v1/applications';
const OTHER = 'https://evil.example/callback';

describe('an application of a member', () => {
  let app: TestApp;
  /** The first user of the organization, and so its admin. The others are members. */
  let ada: EnrolledUser;
  let bob: EnrolledUser;
  let eve: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@approval.example');
    bob = await app.enrolled('bob@approval.example');
    eve = await app.enrolled('eve@approval.example');
  });
  afterAll(() => app.close());

  const call = (browser: Client, method: string, path: string, body?: object, headers = {}) =>
    browser.send(method, API + path, {
      address: newAddress(),
      headers,
      ...(body === undefined ? {} : { body }),
    });

  async function registered(browser: Client, more: object = {}): Promise<string> {
    const body = { name: 'Wiki', type: 'web', redirect_uris: [CALLBACK], ...more };
    const answer = await call(browser, 'POST', '', body);
    if (answer.status !== 201) throw new Error(answer.text);
    return answer.json.client_id as string;
  }

  const query = (clientId: string, more: Readonly<Record<string, string>> = {}) =>
    new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
      ...more,
    }).toString();

  const ask = (browser: Client, clientId: string, more: Readonly<Record<string, string>> = {}) =>
    browser.get(`/oauth/authorize?${query(clientId, more)}`, { address: newAddress() });

  /**
   * Returns the result of an authorization request: `code`, `page` for a page of the service, or
   * the error that the application gets.
   */
  function outcome(answer: Answer): string {
    const location = answer.headers.get('location') ?? '';
    if (location.startsWith('/interaction/')) return 'page';
    const { searchParams } = new URL(location);
    return searchParams.has('code') ? 'code' : (searchParams.get('error') ?? answer.text);
  }

  const signIn = async (
    { client }: EnrolledUser,
    id: string,
    more: Readonly<Record<string, string>> = {},
  ) => outcome(await ask(client, id, more));

  /**
   * Sends an authorization request, and consents on the page that it leads to. Returns the consent
   * page.
   */
  async function consent(
    { client }: EnrolledUser,
    id: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const page = (await ask(client, id, more)).headers.get('location') ?? '';
    const shown = await client.get(page, { address: newAddress() });
    const agreed = await client.post(`${page}/consent`, {}, { address: newAddress() });
    const back = await client.get(agreed.json.redirect_to as string, { address: newAddress() });
    expect(outcome(back)).toBe('code');
    return shown;
  }

  it('asks a colleague at the first sign-in, and its owner never: a link signs no one in unseen', async () => {
    const id = await registered(bob.client);
    expect(await signIn(bob, id)).toBe('code');
    expect(await signIn(eve, id)).toBe('page');
    expect(await signIn(ada, id)).toBe('page');
    expect(await signIn(eve, id, { prompt: 'none' })).toBe('consent_required');
    const shown = await consent(eve, id);
    expect(shown.text).toContain('No admin of your organization has approved it');
    expect(await signIn(eve, id)).toBe('code');
    expect(await signIn(eve, id, { prompt: 'none' })).toBe('code');
  });

  it('asks once for all sessions, and again for more scopes, or once the user ended its access', async () => {
    const id = await registered(bob.client);
    await consent(eve, id, { scope: 'openid' });
    await eve.client.post('/logout', {}, { address: newAddress() });
    await eve.client.logIn(eve.key);
    expect(await signIn(eve, id, { scope: 'openid' })).toBe('code');
    expect(await signIn(eve, id)).toBe('page');
    const claims = JSON.stringify({ userinfo: { email: null } });
    expect(await signIn(eve, id, { scope: 'openid', claims })).toBe('page');
    const ended = await eve.client.send('DELETE', `/v1/account/applications/${id}`, {
      address: newAddress(),
    });
    expect(ended.status).toBe(200);
    expect(await signIn(eve, id, { scope: 'openid' })).toBe('page');
  });

  it('asks again for a redirect URI that is new since the consent, and not for the one of before', async () => {
    const id = await registered(bob.client);
    await consent(eve, id);
    const changed = await call(bob.client, 'PATCH', `/${id}`, {
      redirect_uris: [CALLBACK, OTHER],
    });
    expect(changed.status).toBe(200);
    expect(await signIn(eve, id, { redirect_uri: OTHER })).toBe('page');
    expect(await signIn(eve, id, { redirect_uri: OTHER, prompt: 'none' })).toBe('consent_required');
    expect(await signIn(eve, id)).toBe('code');
  });

  it('needs no consent once an admin has approved it, with a touch and an audit row', async () => {
    const id = await registered(bob.client);
    const approve = (by: EnrolledUser, headers = {}) =>
      call(by.client, 'POST', `/${id}/approve`, undefined, headers);
    expect((await approve(bob)).json.code).toBe('admin_required');
    expect((await approve(eve)).status).toBe(404);
    await touchedAgo(app, 'ada@approval.example', 301);
    expect((await approve(ada)).json.code).toBe('insufficient_user_authentication');
    await touchedAgo(app, 'ada@approval.example', 0);
    expect((await approve(ada, { 'if-match': '"other"' })).status).toBe(412);
    const stale = { 'if-match': '"other"' };
    const renamed = await call(bob.client, 'PATCH', `/${id}`, { name: 'Renamed' }, stale);
    expect(renamed.status).toBe(412);
    const before = await call(bob.client, 'GET', `/${id}`);
    expect(before.json).toMatchObject({ approved_at: null, approved_redirect_uris: null });
    const answer = await approve(ada, { 'if-match': before.headers.get('etag') });
    expect([answer.status, answer.json]).toMatchObject([
      200,
      { client_id: id, approved_at: expect.any(String), approved_redirect_uris: [CALLBACK] },
    ]);
    expect(answer.headers.get('etag')).not.toBe(before.headers.get('etag'));
    expect(await signIn(eve, id, { prompt: 'none' })).toBe('code');
    const events = await rows<{ details: object; org_id: string | null }>(
      app.dataSource,
      `SELECT details, org_id FROM audit_events WHERE type = 'application_approved' AND details ->> 'client_id' = $1`,
      [id],
    );
    expect(events).toMatchObject([
      { details: { name: 'Wiki', redirect_uris: [CALLBACK] }, org_id: expect.any(String) },
    ]);
  });

  it('loses the silent sign-in at an address that its owner adds to an approved one', async () => {
    const id = await registered(bob.client);
    await call(ada.client, 'POST', `/${id}/approve`);
    await call(bob.client, 'PATCH', `/${id}`, { redirect_uris: [CALLBACK, OTHER] });
    expect(await signIn(eve, id)).toBe('code');
    expect(await signIn(eve, id, { redirect_uri: OTHER })).toBe('page');
    // A redirect URI that is removed and added again is not approved any more.
    await call(bob.client, 'PATCH', `/${id}`, { redirect_uris: [OTHER] });
    await call(bob.client, 'PATCH', `/${id}`, { redirect_uris: [CALLBACK] });
    expect(await signIn(eve, id)).toBe('page');
  });

  it('keeps the silent sign-in at an address that an admin adds, and at no other one', async () => {
    const id = await registered(bob.client);
    await call(ada.client, 'POST', `/${id}/approve`);
    const third = 'https://third.example/callback';
    await call(bob.client, 'PATCH', `/${id}`, { redirect_uris: [CALLBACK, OTHER] });
    await call(ada.client, 'PATCH', `/${id}`, { redirect_uris: [CALLBACK, OTHER, third] });
    expect(await signIn(eve, id, { redirect_uri: third })).toBe('code');
    expect(await signIn(eve, id, { redirect_uri: OTHER })).toBe('page');
  });

  it.each([
    ['auth_method', () => Promise.resolve({ auth_method: 'client_secret_post' })],
    ['jwks', async () => ({ jwks: { keys: [(await newClientKeys()).jwk] } })],
    ['require_pkce', () => Promise.resolve({ require_pkce: false })],
  ])(
    'loses its approval with a change of its owner to %s, and not with one of an admin',
    async (name, newValue) => {
      const [keys, change] = [{ keys: [(await newClientKeys()).jwk] }, await newValue()];
      const proof = name === 'jwks' ? { auth_method: 'private_key_jwt', jwks: keys } : {};
      const made = () => registered(bob.client, { require_pkce: true, ...proof });
      const ids = [await made(), await made()] as const;
      for (const id of ids) await call(ada.client, 'POST', `/${id}/approve`);
      expect((await call(ada.client, 'PATCH', `/${ids[0]}`, change)).status).toBe(200);
      expect((await call(bob.client, 'PATCH', `/${ids[1]}`, change)).status).toBe(200);
      expect(await signIn(eve, ids[0])).toBe('code');
      expect(await signIn(eve, ids[1])).toBe('page');
      const { json } = await call(bob.client, 'GET', `/${ids[1]}`);
      expect(json).toMatchObject({ approved_at: null, approved_redirect_uris: null });
    },
  );

  it('keeps its approval with another name or lifetime', async () => {
    const id = await registered(bob.client);
    await call(ada.client, 'POST', `/${id}/approve`);
    await call(bob.client, 'PATCH', `/${id}`, { name: 'Docs', id_token_lifetime_seconds: 600 });
    expect(await signIn(eve, id)).toBe('code');
  });

  it('is approved by its registration if an admin makes it, and stays so when the admin is demoted', async () => {
    await addMember(app, 'ada@approval.example', 'carol@approval.example', { scimManaged: false });
    const carol = await app.enrolled('carol@approval.example');
    const carolId = await idOf(app, 'carol@approval.example');
    expect((await orgApi(ada.client, 'POST', `/members/${carolId}/promote`)).status).toBe(200);
    const id = await registered(carol.client);
    expect(await signIn(eve, id)).toBe('code');
    expect((await orgApi(ada.client, 'POST', `/members/${carolId}/demote`)).status).toBe(200);
    expect(await signIn(eve, id)).toBe('code');
    await call(carol.client, 'PATCH', `/${id}`, { redirect_uris: [CALLBACK, OTHER] });
    expect(await signIn(eve, id, { redirect_uri: OTHER })).toBe('page');
    expect(await signIn(eve, id)).toBe('code');
  });

  it('asks for a native application too, once for each colleague, on every port of its loopback address', async () => {
    const uri = 'http://127.0.0.1/done';
    const id = await registered(bob.client, { type: 'native', redirect_uris: [uri] });
    const at = (port: number) => ({ redirect_uri: `http://127.0.0.1:${port}/done` });
    expect(await signIn(eve, id, at(4000))).toBe('page');
    await consent(eve, id, at(4000));
    expect(await signIn(eve, id, at(4001))).toBe('code');
    await call(ada.client, 'POST', `/${id}/approve`);
    expect(await signIn(ada, id, at(4002))).toBe('code');
  });

  it('counts as approved if it was there before the upgrade', async () => {
    const id = await registered(bob.client);
    const uris = `ARRAY(SELECT jsonb_array_elements_text(metadata -> 'redirect_uris'))`;
    const migration = readFileSync(
      new URL('../../../migrations/1763790050100-application-approvals.sql', import.meta.url),
      'utf8',
    );
    const [update = ''] = /UPDATE oauth_clients[^;]+;/.exec(migration) ?? [];
    await app.dataSource.query(update);
    const [row] = await rows<{ isApproved: boolean }>(
      app.dataSource,
      `SELECT approved_uris = ${uris} AS "isApproved" FROM oauth_clients WHERE id = $1`,
      [id],
    );
    expect(row).toEqual({ isApproved: true });
    expect(await signIn(eve, id, { prompt: 'none' })).toBe('code');
  });
});
