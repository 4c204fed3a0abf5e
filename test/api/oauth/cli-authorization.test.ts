import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { BatchedQueries } from '../../../src/domain/oauth/grants/batched-queries.service.js';
import { OidcProvider } from '../../../src/features/oidc/engine/oidc-provider.service.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../../support/app.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
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

  /** Moves the last touch in the sessions of a user back by some seconds. */
  function age(email: string, seconds: number) {
    return app.dataSource.query(
      `UPDATE sessions SET auth_time = auth_time - make_interval(secs => $2)
        WHERE user_id = (SELECT id FROM users WHERE email = $1)`,
      [email, seconds],
    );
  }

  /**
   * Follows a redirect from a new address, because this file sends more requests than one address
   * may send.
   */
  const visit = (browser: Client, from: Answer) =>
    browser.get(locationOf(from), { address: newAddress() });

  /** Logs in by the key for an authorization request that waits, and resumes the request. */
  async function afterTouch(user: EnrolledUser, begun: Answer): Promise<Answer> {
    await user.client.logIn(user.key, { address: newAddress() });
    const again = await visit(user.client, begun);
    return visit(user.client, again);
  }

  /**
   * Runs the authorization request of `svc login` for a DPoP key. Returns the key and a function
   * that redeems the code.
   */
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
    // ada was the first user, and is the admin
    const bob = await app.enrolled('bert@cli-code.example');
    const [admin, member] = [await login(ada, { scope }), await login(bob, { scope })];
    expect((await admin.redeem()).json).toMatchObject({ scope, expires_in: 900 });
    expect((await member.redeem()).json.scope).toBe('openid email svc:credentials');
  });

  it.each(['openid svc:credentials', 'openid svc:admin'])(
    'needs a touch of its own for %s, also directly after a login',
    async (scope) => {
      const { challenge } = newPkce();
      const asked = { scope, code_challenge: challenge };
      await ada.client.logIn(ada.key, { address: newAddress() });
      const silent = await ask(ada, { ...asked, prompt: 'none' });
      expect(parameterOf(new URL(locationOf(silent)), 'error')).toBe('login_required');
      const begun = await ask(ada, asked);
      expect(locationOf(begun)).toMatch(/^\/interaction\//);
      // The touch of the login was in the same second, but before this request, and does not count
      // for it.
      expect(locationOf(await visit(ada.client, begun))).toMatch(/\/login\?/);
      const sent = await afterTouch(ada, begun);
      expect(parameterOf(new URL(locationOf(sent)), 'code')).not.toBe('');
    },
  );

  it('takes the touch of one authorization for no other one', async () => {
    const { challenge } = newPkce();
    const first = await ask(ada, { code_challenge: challenge });
    expect(parameterOf(new URL(locationOf(await afterTouch(ada, first))), 'code')).not.toBe('');
    const second = await ask(ada, { code_challenge: challenge });
    expect(locationOf(await visit(ada.client, second))).toMatch(/\/login\?/);
  });

  it('gives one code for one touch, if the browser resumes it five times at once', async () => {
    const begun = await ask(ada, { code_challenge: newPkce().challenge });
    await ada.client.logIn(ada.key, { address: newAddress() });
    const resume = await visit(ada.client, begun);
    const runner = app.dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query("SELECT id FROM oauth_artifacts WHERE model = 'Interaction' FOR UPDATE");
    const resumed = Promise.all(Array.from({ length: 5 }, () => visit(ada.client.copy(), resume)));
    await untilWaiting(app.dataSource, 5);
    await runner.commitTransaction();
    await runner.release();
    const statuses = (await resumed).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([303, 400, 400, 400, 400]);
  });

  it('gives no second code if the page of the login is stored again after the first one', async () => {
    const begun = await ask(ada, { code_challenge: newPkce().challenge });
    await ada.client.logIn(ada.key, { address: newAddress() });
    const resume = await visit(ada.client, begun);
    const { provider } = app.nest.get(OidcProvider, { strict: false });
    const uid = locationOf(begun).split('/').at(-1) ?? '';
    const opened = await provider.Interaction.find(uid);
    const earlier = ada.client.copy();
    expect((await visit(ada.client, resume)).status).toBe(303);
    await opened?.save(600);
    for (const name of ['svc_rs', 'svc_rs.sig']) {
      ada.client.setCookie(name, earlier.cookie(name) ?? '');
    }
    expect((await visit(ada.client, resume)).status).toBe(400);
  });

  it('needs a touch after the request also where the browser had no session', async () => {
    const guest = app.client();
    const begun = await ask({ ...ada, client: guest }, { code_challenge: newPkce().challenge });
    await guest.logIn(ada.key, { address: newAddress() });
    // the touch becomes older than the request, as in a session that was copied into the browser
    await age('ada@cli-code.example', 60);
    expect(locationOf(await visit(guest, begun))).toMatch(/\/login\?/);
  });

  describe('opens a session of its own', () => {
    const people = ['eve', 'dan', 'fay', 'gil', 'hal', 'ian', 'joe', 'kim', 'lea', 'mia', 'ned'];
    const newUser = () => app.enrolled(`${people.shift()}@cli-code.example`);

    /** Logs in and redeems the code. Returns functions that send requests with the token. */
    async function command(user: EnrolledUser) {
      const { key, redeem } = await login(user);
      const answer = await redeem();
      expect([answer.status, answer.json]).toEqual([200, expect.any(Object)]);
      const token = String(answer.json.access_token);
      const send = async (method: string, path: string) => {
        const dpop = await key.proof(method, app.baseUrl + path, { ath: ath(token) });
        const headers = { authorization: `DPoP ${token}`, dpop, origin: '' };
        return app.client().send(method, path, { headers, address: newAddress() });
      };
      const status = async () => (await send('GET', '/v1/keys')).status;
      return { answer, send, status, redeem };
    }

    interface Own {
      readonly id: string;
      readonly client: { readonly client_id: string } | null;
      readonly device: string;
      readonly created_at: string;
      readonly expires_at: string;
    }
    const ownOf = async (user: EnrolledUser) => {
      const { json } = await user.client.get('/v1/sessions');
      return (json as { sessions: Own[] }).sessions.filter(({ client }) => client !== null);
    };

    it('of the whole length, in a browser whose session ends in five minutes, with the name of its device', async () => {
      const user = await newUser();
      await app.dataSource.query(
        `UPDATE sessions SET expires_at = now() + interval '5 minutes'
         WHERE user_id = (SELECT id FROM users WHERE email = 'eve@cli-code.example')`,
      );
      const { answer } = await command(user);
      expect(answer.json.expires_in).toBeGreaterThan(7.9 * 3600);
      const [own, ...others] = await ownOf(user);
      expect(others).toEqual([]);
      expect(own?.client?.client_id).toBe('svc-cli');
      expect(Date.parse(own?.expires_at ?? '') - Date.parse(own?.created_at ?? '')).toBe(
        8 * 3_600_000,
      );
      expect(own?.device).toBe('node'); // the user agent of the program that redeemed the code
      const [session] = await app.dataSource.query<Record<string, unknown>[]>(
        `SELECT s.level, s.authenticator_id IS NOT NULL AS keyed, s.of_device, s.auth_time = b.auth_time AS same
         FROM sessions s JOIN sessions b ON b.user_id = s.user_id AND b.client_id IS NULL WHERE s.id = $1`,
        [own?.id],
      );
      expect(session).toEqual({ level: 'verified', keyed: true, of_device: false, same: true });
    });

    it('that the logout of the browser leaves, on each of its paths', async () => {
      const user = await newUser();
      const { status } = await command(user);
      const page = await user.client.get('/oauth/logout');
      const [, xsrf = ''] = /name="xsrf" value="([^"]+)"/.exec(page.text) ?? [];
      await user.client.send('POST', '/oauth/logout/confirm', {
        body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
      expect((await user.client.get('/v1/keys')).status).toBe(401);
      expect(await status()).toBe(200);
      await user.client.logIn(user.key, { address: newAddress() });
      await user.client.post('/logout');
      expect(await status()).toBe(200);
    });

    it('that ends by DELETE /v1/sessions, and leaves the browser', async () => {
      const user = await newUser();
      const { status } = await command(user);
      const [own] = await ownOf(user);
      expect((await user.client.send('DELETE', `/v1/sessions/${own?.id}`)).status).toBe(204);
      expect(await status()).toBe(401);
      expect((await user.client.get('/v1/keys')).status).toBe(200);
    });

    it('that ends with the key, the account, and the revocation by an admin', async () => {
      const act = (path: string) =>
        ada.client.post(`/api/v1/org/members/${path}`, {}, { address: newAddress() });
      const ends: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
        key: (id) => app.dataSource.query('DELETE FROM authenticators WHERE user_id = $1', [id]),
        deactivation: (id) => act(`${id}/deactivate`),
        revocation: (id) => act(`${id}/revoke-credentials`),
        removal: (id) => act(`${id}/remove`),
      };
      await ada.client.logIn(ada.key, { address: newAddress() });
      for (const [name, end] of Object.entries(ends)) {
        const user = await newUser();
        const { status } = await command(user);
        const [row] = await app.dataSource.query<{ id: string }[]>(
          'SELECT id FROM users ORDER BY created_at DESC LIMIT 1',
        );
        expect([name, await status()]).toEqual([name, 200]);
        await end(row?.id ?? '');
        expect([name, await status()]).toEqual([name, 401]);
      }
    });

    it('that a second redemption of its code ends, with every token', async () => {
      const user = await newUser();
      const { status, redeem } = await command(user);
      await app.dataSource.query(
        "UPDATE oauth_artifacts SET consumed_at = consumed_at - interval '5 s' WHERE consumed_at IS NOT NULL",
      );
      expect((await redeem()).json.error).toBe('invalid_grant');
      expect(await status()).toBe(401);
      expect(await ownOf(user)).toEqual([]);
      expect((await user.client.get('/v1/keys')).status).toBe(200);
    });

    it('and leaves none behind if the code gives no token', async () => {
      const user = await newUser();
      const { redeem } = await login(user);
      expect((await redeem(await newDpopKey())).json.error).toBe('invalid_grant');
      expect(await ownOf(user)).toEqual([]);
      expect((await user.client.get('/v1/keys')).status).toBe(200); // the browser's session stays
    });

    it('and leaves none behind if a fault of the service gives no token', async () => {
      const user = await newUser();
      const { redeem } = await login(user);
      const queries = app.nest.get(BatchedQueries, { strict: false });
      const fault = Object.assign(new Error('canceled'), { code: '57014' });
      const issue = vi.spyOn(queries, 'issueToUser').mockRejectedValueOnce(fault);
      const answer = await redeem();
      issue.mockRestore();
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(await ownOf(user)).toEqual([]);
      expect((await user.client.get('/v1/keys')).status).toBe(200); // the browser's session stays
    });

    it('once, for 20 redemptions of one code at the same moment, and ends it soon', async () => {
      const user = await newUser();
      const { redeem } = await login(user);
      const answers = await Promise.all(Array.from({ length: 20 }, () => redeem()));
      expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
      const own = await ownOf(user);
      expect(own.length).toBeLessThanOrEqual(1);
      for (const { expires_at: ends } of own) {
        expect(Date.parse(ends) - Date.now()).toBeLessThanOrEqual(5_000);
      }
    });
  });
});
