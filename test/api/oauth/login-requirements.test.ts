import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf, type Application } from '../../support/applications.js';
import { newAddress } from '../../support/client.js';
import { touchedAgo } from '../../support/keys.js';
import { CALLBACK, authorize, newPkce, parameterOf, postForm } from '../../support/oauth-flow.js';

describe('a request for a certain user, or for a certain way of logging in', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  let bob: EnrolledUser;
  let application: Application;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@require.example');
    bob = await app.enrolled('bob@require.example');
    application = await addApplication(
      app,
      { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_basic' },
      { owner: 'ada@require.example' },
    );
  });
  afterAll(() => app.close());

  it('with an ID token of Ada gives Bob no code, with any number of touches', async () => {
    const hint = await idToken(ada);
    expect(await after(bob, { id_token_hint: hint })).toBe('login_required');
    expect(await after(ada, { id_token_hint: hint })).toBe('code');
  });

  it('with the subject of another user as a claim gives no code', async () => {
    const { sub } = claimsOf(await idToken(ada));
    const claims = JSON.stringify({ id_token: { sub: { value: sub } } });
    expect(await after(bob, { claims })).toBe('login_required');
    expect(await after(ada, { claims })).toBe('code');
  });

  it.each([{ values: ['urn:example:gold'] }, { value: 'urn:example:gold' }])(
    'with the essential acr %j fails, since no login here reaches it',
    async (acr) => {
      const claims = JSON.stringify({ id_token: { acr: { essential: true, ...acr } } });
      expect(await after(ada, { claims })).toBe('unmet_authentication_requirements');
    },
  );

  it('with a hint that the service did not sign is refused at once', async () => {
    const forged = await new SignJWT({ sub: 'x', iss: app.baseUrl, aud: application.clientId })
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.alloc(32));
    const answer = await ask(ada, { id_token_hint: forged });
    expect(new URL(answer).searchParams.get('error')).toBe('invalid_request');
  });

  it.each([
    ['prompt=none after an old touch', { prompt: 'none', max_age: '60' }],
    ['prompt=login, and never logs in', { prompt: 'login' }],
    ['prompt=consent, and never consents', { prompt: 'consent' }],
    ['the subject of another user', { claims: '{"id_token":{"sub":{"value":"another"}}}' }],
  ])('leaves no grant of a user who has %s', async (_name, parameters) => {
    await touchedAgo(app, 'ada@require.example', 61);
    const before = await grantsOf('ada@require.example');
    expect(new URL(await ask(ada, parameters), app.baseUrl).searchParams.get('code')).toBeNull();
    expect(await grantsOf('ada@require.example')).toEqual(before);
    expect(await after(ada, {})).toBe('code');
    expect(await grantsOf('ada@require.example')).toHaveLength(before.length + 1);
  });

  /** Returns the ids of the grants of a user: each authorization leaves one. */
  async function grantsOf(email: string): Promise<readonly string[]> {
    const rows = await app.dataSource.query<{ id: string }[]>(
      `SELECT g.id FROM oauth_grants g JOIN users u ON u.id = g.user_id
       WHERE u.email = $1 ORDER BY g.id`,
      [email],
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Returns the error of an authorization request, or `code`. The user logs in at each login page
   * on the way.
   */
  async function after(
    person: EnrolledUser,
    parameters: Readonly<Record<string, string>>,
  ): Promise<string> {
    let next = await ask(person, parameters);
    for (let hops = 0; hops < 8; hops += 1) {
      const url = new URL(next, app.baseUrl);
      if (url.href.startsWith(CALLBACK)) return url.searchParams.get('error') ?? 'code';
      if (url.pathname === '/login') {
        expect((await person.client.logIn(person.key)).status).toBe(200);
        next = url.searchParams.get('redirect_to') ?? '';
        continue;
      }
      const answer = await person.client.get(url.pathname + url.search, { address: newAddress() });
      next = answer.headers.get('location') ?? '';
    }
    throw new Error('too many redirects');
  }

  async function ask(
    { client }: EnrolledUser,
    parameters: Readonly<Record<string, string>>,
  ): Promise<string> {
    const query = new URLSearchParams({ ...request(newPkce().challenge), ...parameters });
    const answer = await client.get(`/oauth/authorize?${query.toString()}`, {
      address: newAddress(),
    });
    return answer.headers.get('location') ?? '';
  }

  async function idToken({ client }: EnrolledUser): Promise<string> {
    const { verifier, challenge } = newPkce();
    const code = parameterOf(await authorize(client, request(challenge)), 'code');
    const { clientId, clientSecret } = application;
    const { json } = await postForm(
      app,
      '/oauth/token',
      { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: CALLBACK },
      { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` },
    );
    return json.id_token as string;
  }

  function request(challenge: string) {
    return {
      client_id: application.clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    };
  }
});
