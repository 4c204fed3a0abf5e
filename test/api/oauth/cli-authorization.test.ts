import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer } from '../../support/client.js';
import { ath, newDpopKey, newPkce, parameterOf, postForm } from '../../support/oauth-flow.js';

const CALLBACK = 'http://127.0.0.1:49321/callback';

describe('the authorization code of svc-cli', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@cli-code.example');
  });
  afterAll(() => app.close());

  function ask(user: EnrolledUser, parameters: Readonly<Record<string, string>>): Promise<Answer> {
    const query = new URLSearchParams({
      client_id: 'svc-cli',
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email svc:credentials',
      code_challenge_method: 'S256',
      ...parameters,
    });
    return user.client.get(`/oauth/authorize?${query.toString()}`, { address: newAddress() });
  }

  const locationOf = (answer: Answer) => answer.headers.get('location') ?? '';

  /** Puts the touch of the user's sessions into the past. */
  function age(email: string, seconds: number) {
    return app.dataSource.query(
      `UPDATE sessions SET auth_time = auth_time - make_interval(secs => $2)
        WHERE user_id = (SELECT id FROM users WHERE email = $1)`,
      [email, seconds],
    );
  }

  /** Touches the key on the login page of a request, and returns to the request. */
  async function afterTouch(user: EnrolledUser, begun: Answer): Promise<Answer> {
    await user.client.logIn(user.key);
    const again = await user.client.get(locationOf(begun));
    return user.client.get(locationOf(again));
  }

  /** Logs in with a code for a DPoP key. */
  async function login(user: EnrolledUser, parameters: Readonly<Record<string, string>> = {}) {
    const key = await newDpopKey();
    const { verifier, challenge } = newPkce();
    const begun = await ask(user, {
      code_challenge: challenge,
      dpop_jkt: key.thumbprint,
      ...parameters,
    });
    const sent = locationOf(begun).startsWith('/') ? await afterTouch(user, begun) : begun;
    const fields = {
      grant_type: 'authorization_code',
      client_id: 'svc-cli',
      code: parameterOf(new URL(locationOf(sent)), 'code'),
      code_verifier: verifier,
      redirect_uri: parameters['redirect_uri'] ?? CALLBACK,
    };
    const redeem = async (other = key) => {
      const dpop = await other.proof('POST', `${app.baseUrl}/oauth/token`);
      return postForm(app, '/oauth/token', fields, { dpop });
    };
    return { sent, key, redeem };
  }

  it.each([CALLBACK, 'http://127.0.0.1:1/callback', 'http://127.0.0.1/callback'])(
    'comes back to %s without a consent page, and is redeemed for a bound token',
    async (redirectUri) => {
      const { sent, redeem } = await login(ada, { redirect_uri: redirectUri });
      expect(locationOf(sent).startsWith(`${redirectUri}?`)).toBe(true);
      expect(parameterOf(new URL(locationOf(sent)), 'iss')).toBe(app.baseUrl);
      expect(await redeem()).toMatchObject({
        status: 200,
        json: { token_type: 'DPoP', scope: 'openid email svc:credentials' },
      });
    },
  );

  it.each([
    'http://localhost:49321/callback',
    'http://[::1]:49321/callback',
    'http://127.0.0.2:49321/callback',
    'https://127.0.0.1:49321/callback',
    'http://127.0.0.1:49321/callback/',
    'http://127.0.0.1:49321/other',
    'http://127.0.0.1:49321/callback?next=1',
    'http://127.0.0.1@evil.example/callback',
    'http://evil.example/callback',
  ])('never goes to %s', async (redirectUri) => {
    const answer = await ask(ada, {
      redirect_uri: redirectUri,
      code_challenge: newPkce().challenge,
    });
    expect([answer.status, locationOf(answer)]).toEqual([400, '']);
  });

  it('needs PKCE', async () => {
    const answer = await ask(ada, {});
    expect(parameterOf(new URL(locationOf(answer)), 'error')).toBe('invalid_request');
  });

  it('is useless to a client with another DPoP key than the one that asked', async () => {
    const { redeem } = await login(ada);
    expect(await redeem(await newDpopKey())).toMatchObject({
      status: 400,
      json: { error: 'invalid_grant' },
    });
  });

  it('gives svc:admin to an admin alone', async () => {
    const scope = 'openid email svc:credentials svc:admin';
    const bob = await app.enrolled('bert@cli-code.example'); // ada came first, and is the admin
    const [admin, member] = [await login(ada, { scope }), await login(bob, { scope })];
    expect((await admin.redeem()).json).toMatchObject({ scope, expires_in: 900 });
    expect((await member.redeem()).json.scope).toBe('openid email svc:credentials');
  });

  it('needs a touch for svc:admin in the authorization itself, also directly after a login', async () => {
    const scope = 'openid svc:admin';
    await ada.client.logIn(ada.key);
    const { challenge } = newPkce();
    const silent = await ask(ada, { scope, code_challenge: challenge, prompt: 'none' });
    expect(parameterOf(new URL(locationOf(silent)), 'error')).toBe('login_required');
    await age('ada@cli-code.example', 5); // the touch is older than the request
    const begun = await ask(ada, { scope, code_challenge: challenge });
    expect(locationOf(begun)).toMatch(/^\/interaction\//);
    expect(locationOf(await ada.client.get(locationOf(begun)))).toMatch(/\/login\?/);
    const sent = await afterTouch(ada, begun);
    expect(parameterOf(new URL(locationOf(sent)), 'code')).not.toBe('');
  });

  it('needs a touch within the last minute, so that no page obtains it unseen', async () => {
    const bob = await app.enrolled('bob@cli-code.example');
    await age('bob@cli-code.example', 61);
    const { challenge } = newPkce();
    const silent = await ask(bob, { code_challenge: challenge, prompt: 'none' });
    expect(parameterOf(new URL(locationOf(silent)), 'error')).toBe('login_required');
    const asked = await ask(bob, { code_challenge: challenge });
    expect(locationOf(asked)).toMatch(/^\/interaction\//);
    const page = await bob.client.get(locationOf(asked));
    expect(locationOf(page)).toMatch(/\/login\?/);

    await bob.client.logIn(bob.key);
    const again = await bob.client.get(locationOf(asked));
    const resumed = await bob.client.get(locationOf(again));
    expect(parameterOf(new URL(locationOf(resumed)), 'code')).not.toBe('');
  });

  it('gives a token that opens the APIs, and that ends with the session of the browser', async () => {
    const eve = await app.enrolled('eve@cli-code.example');
    const { key, redeem } = await login(eve);
    const token = String((await redeem()).json.access_token);
    const keys = async () => {
      const url = `${app.baseUrl}/v1/keys`;
      const dpop = await key.proof('GET', url, { ath: ath(token) });
      const headers = { authorization: `DPoP ${token}`, dpop };
      return (await app.client().get('/v1/keys', { headers })).status;
    };
    expect(await keys()).toBe(200);
    await eve.client.post('/logout');
    expect(await keys()).toBe(401);
  });
});
