import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AAL3 } from '#domain/sessions/session.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf, type Application } from '../../support/applications.js';
import { newAddress } from '../../support/client.js';
import { DpopKey } from '../../support/dpop-key.js';
import { addKey, touchedAgo } from '../../support/keys.js';
import { CALLBACK, newPkce, parameterOf, postForm } from '../../support/oauth-flow.js';

let app: TestApp;
let application: Application;
beforeAll(async () => {
  app = await startTestApp();
  await app.enrolled('owner@step-up.example');
  application = await addApplication(
    app,
    { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_post' },
    { owner: 'owner@step-up.example' },
  );
  await app.dataSource.query(
    `UPDATE oauth_clients SET metadata = metadata || $1 WHERE id = 'svc-cli'`,
    [{ grant_types: ['authorization_code'], response_types: ['code'], redirect_uris: [CALLBACK] }],
  );
});
afterAll(() => app.close());

let people = 0;
async function newUser(): Promise<EnrolledUser & { readonly email: string }> {
  people += 1;
  const email = `ada-${people}@step-up.example`;
  return { ...(await app.enrolled(email)), email };
}

/**
 * Follows the redirects of an authorization request. The user touches the key on each login page.
 * Returns those pages and the callback.
 */
async function follow(
  { client, key }: EnrolledUser,
  parameters: Readonly<Record<string, string>>,
): Promise<{ readonly callback: URL; readonly logins: readonly URL[] }> {
  const logins: URL[] = [];
  let next = `/oauth/authorize?${new URLSearchParams(parameters).toString()}`;
  for (let hops = 0; hops < 10; hops += 1) {
    const url = new URL(next, app.baseUrl);
    if (url.href.startsWith(CALLBACK)) return { callback: url, logins };
    const path = url.pathname + url.search;
    if (url.pathname === '/login') {
      logins.push(url);
      expect((await client.logIn(key, { address: newAddress() })).status).toBe(200);
      next = url.searchParams.get('redirect_to') ?? '';
    } else {
      const { headers } = await client.get(path, { address: newAddress() });
      const consent = () => client.post(`${path}/consent`, {}, { address: newAddress() });
      next = headers.get('location') ?? ((await consent()).json.redirect_to as string);
    }
  }
  throw new Error('too many redirects');
}

/**
 * Sends an authorization request with parameters such as `max_age` and redeems the code. Returns
 * the login pages, the token, and the claims of the ID token.
 */
async function stepUp(
  person: EnrolledUser,
  parameters: Readonly<Record<string, string>>,
  { clientId, clientSecret }: Partial<Application> = application,
  dpop?: DpopKey,
) {
  const { verifier, challenge } = newPkce();
  const client = { client_id: clientId ?? '' };
  const { callback, logins } = await follow(person, {
    ...client,
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: clientId === 'svc-cli' ? 'openid svc:credentials' : 'openid',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...parameters,
  });
  const error = callback.searchParams.get('error');
  if (error !== null) return { error, logins };
  const { json } = await postForm(
    app,
    '/oauth/token',
    {
      ...client,
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
      grant_type: 'authorization_code',
      code: parameterOf(callback, 'code'),
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    },
    dpop ? { dpop: await dpop.proof('POST', `${app.baseUrl}/oauth/token`, '') } : {},
  );
  return { token: json.access_token as string, claims: claimsOf(json.id_token as string), logins };
}

const age = ({ claims }: { readonly claims?: Record<string, unknown> }) =>
  Math.floor(Date.now() / 1000) - Number(claims?.['auth_time']);

describe('the command line that gets the challenge of a step-up', () => {
  it('authorizes with its max_age: the login page asks for a touch, and the new token is accepted', async () => {
    const ada = await newUser();
    const spare = await addKey(app, ada.client, app.newKey(), 'Spare');
    const dpop = await DpopKey.generate();
    const path = `/v1/keys/${spare.json.key.id as string}`;
    const remove = async (token: string) =>
      app.client().send('DELETE', path, {
        headers: {
          origin: '',
          authorization: `DPoP ${token}`,
          dpop: await dpop.proof('DELETE', app.baseUrl + path, token),
        },
      });
    const cli = { clientId: 'svc-cli' };
    const first = await stepUp(ada, {}, cli, dpop);
    expect(first.logins).toHaveLength(1); // svc-cli needs a touch for each authorization
    await touchedAgo(app, ada.email, 61);
    const refused = await remove(first.token ?? '');
    expect([refused.status, refused.json.code]).toEqual([401, 'insufficient_user_authentication']);
    const challenge = refused.headers.get('www-authenticate') ?? '';
    const [, maxAge = ''] = /max_age="(\d+)"/.exec(challenge) ?? [];
    expect(maxAge).toBe('60');

    const second = await stepUp(ada, { max_age: maxAge }, cli, dpop);
    expect(second.logins.map(({ searchParams }) => searchParams.get('again'))).toEqual(['true']);
    expect(age(second)).toBeLessThan(30);
    expect((await remove(second.token ?? '')).status).toBe(200);
  });
});

describe('max_age', () => {
  it('is answered by the login page, which says that the application asks for a new touch', async () => {
    const ada = await newUser();
    await touchedAgo(app, ada.email, 61);
    const { claims, logins } = await stepUp(ada, { max_age: '60' });
    const [page] = logins;
    const { text } = await ada.client.get(`${page?.pathname}${page?.search}`);
    expect(text).toContain('Touch your security key again');
    expect(age({ claims: claims ?? {} })).toBeLessThan(30);
  });

  it('asks for nothing after a recent touch', async () => {
    const ada = await newUser();
    await touchedAgo(app, ada.email, 30);
    const { claims, logins } = await stepUp(ada, { max_age: '60' });
    expect(logins).toEqual([]);
    expect(age({ claims: claims ?? {} })).toBeGreaterThanOrEqual(30);
  });

  it('with prompt=none and an old touch is login_required', async () => {
    const ada = await newUser();
    await touchedAgo(app, ada.email, 61);
    const { error, logins } = await stepUp(ada, { max_age: '60', prompt: 'none' });
    expect([error, logins]).toEqual(['login_required', []]);
  });
});

describe('prompt=login', () => {
  it('asks for a touch also right after another one', async () => {
    const ada = await newUser();
    await touchedAgo(app, ada.email, 2);
    const { claims, logins } = await stepUp(ada, { prompt: 'login' });
    expect(logins).toHaveLength(1);
    expect(claims).toMatchObject({ acr: AAL3 });
  });
});

describe('acr_values', () => {
  /**
   * Creates a user who is logged in by a U2F key, which proves presence but no user verification,
   * and so no AAL3.
   */
  async function withPresenceOnly(): Promise<EnrolledUser> {
    people += 1;
    const email = `ada-${people}@step-up.example`;
    const [client, key] = [app.client(), app.newKey({ format: 'fido-u2f' })];
    await client.signIn(email);
    expect((await client.enroll(key)).status).toBe(200);
    expect((await client.logIn(key, { address: newAddress() })).status).toBe(200);
    await touchedAgo(app, email, 2);
    return { client, key };
  }

  it('with the AAL3 that the session has asks for nothing', async () => {
    const { claims, logins } = await stepUp(await newUser(), { acr_values: `urn:x ${AAL3}` });
    expect([logins, claims?.['acr']]).toEqual([[], AAL3]);
  });

  it('with AAL3 leads a session without it to the login page, where another key gives it', async () => {
    const ada = await withPresenceOnly();
    const key = app.newKey();
    expect((await addKey(app, ada.client, key)).status).toBe(200);
    const before = await stepUp(ada, {});
    expect([before.logins, before.claims?.['acr']]).toEqual([[], undefined]);
    const { claims, logins } = await stepUp({ client: ada.client, key }, { acr_values: AAL3 });
    expect([logins.length, claims?.['acr']]).toEqual([1, AAL3]);
  });

  it('is a wish: where the key cannot give AAL3, the request goes on after one touch', async () => {
    const { claims, logins } = await stepUp(await withPresenceOnly(), { acr_values: AAL3 });
    expect([logins.length, claims?.['acr'], claims?.['amr']]).toEqual([
      1,
      undefined,
      ['hwk', 'user'],
    ]);
  });

  it('of another level asks for nothing, since no login here reaches it', async () => {
    const { logins } = await stepUp(await withPresenceOnly(), { acr_values: 'urn:example:gold' });
    expect(logins).toEqual([]);
  });
});

describe('a consent that is given in a later session of the same user', () => {
  it('states the login of that session, and not the stronger one in which the request began', async () => {
    const ada = await newUser();
    const u2f = app.newKey({ format: 'fido-u2f' });
    expect((await addKey(app, ada.client, u2f)).status).toBe(200);
    const { verifier, challenge } = newPkce();
    const query = new URLSearchParams({
      client_id: application.clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      prompt: 'consent',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    const begun = await ada.client.get(`/oauth/authorize?${query.toString()}`, {
      address: newAddress(),
    });
    const consent = `${begun.headers.get('location') ?? ''}/consent`;
    await ada.client.post('/logout', {}, { address: newAddress() });
    await ada.client.signIn(ada.email);
    expect((await ada.client.logIn(u2f, { address: newAddress() })).status).toBe(200);
    const { json } = await ada.client.post(consent, {}, { address: newAddress() });
    const { pathname, search } = new URL(json.redirect_to as string);
    const resumed = await ada.client.get(pathname + search, { address: newAddress() });
    const answer = await postForm(app, '/oauth/token', {
      client_id: application.clientId,
      client_secret: application.clientSecret,
      grant_type: 'authorization_code',
      code: parameterOf(new URL(resumed.headers.get('location') ?? ''), 'code'),
      code_verifier: verifier,
      redirect_uri: CALLBACK,
    });
    const { acr, amr } = claimsOf(answer.json.id_token as string);
    expect([acr, amr]).toEqual([undefined, ['hwk', 'user']]);
  });
});
