import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, claimsOf } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { newDpopKey, postForm } from '../../support/oauth-flow.js';
import { auditOf, count, rows } from '../../support/rows.js';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const ADA = 'ada@device.example'; // the first user of the organization is its admin
const BOB = 'bob@device.example';
const NATIVE = {
  client_name: 'Television <b>one</b>',
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  grant_types: [DEVICE_GRANT],
  response_types: [],
  redirect_uris: [],
};

interface Codes {
  readonly device_code: string;
  readonly user_code: string;
}

describe('a device that requests access for a user', () => {
  let app: TestApp;
  let ada: Client;
  let adasKey: SoftwareKey;
  let bob: Client;
  let television: string;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada, key: adasKey } = await app.enrolled(ADA));
    ({ client: bob } = await app.enrolled(BOB));
    ({ clientId: television } = await addApplication(app, NATIVE, { owner: ADA }));
  });
  beforeEach(async () => {
    await app.dataSource.query('DELETE FROM oauth_user_code_tries');
    await app.dataSource.query("UPDATE sessions SET auth_time = now() WHERE level = 'verified'");
  });
  afterAll(() => app.close());

  const ask = (fields: Record<string, string> = {}, headers: Record<string, string> = {}) =>
    postForm(
      app,
      '/oauth/device',
      { client_id: 'svc-cli', scope: 'openid email svc:credentials svc:admin', ...fields },
      headers,
    );
  const newCodes = async (fields: Record<string, string> = {}) => {
    const answer = await ask(fields);
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    return answer.json as Codes;
  };
  const poll = (
    { device_code }: Codes,
    clientId = 'svc-cli',
    headers: Record<string, string> = {},
  ) =>
    postForm(
      app,
      '/oauth/token',
      { grant_type: DEVICE_GRANT, device_code, client_id: clientId },
      headers,
    );
  const show = (browser: Client, userCode: string, fields: Record<string, string> = {}) =>
    browser.send('POST', '/device', {
      address: newAddress(),
      body: new URLSearchParams({ user_code: userCode, ...fields }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  const decide = (browser: Client, decision: 'approve' | 'deny', userCode: string) =>
    browser.post(`/device/${decision}`, { user_code: userCode }, { address: newAddress() });
  const outcomeOf = ({ status, json }: Answer) => [status, json.error ?? json.code];
  const waitOut = () =>
    app.dataSource.query("UPDATE oauth_artifacts SET polled_at = polled_at - interval '1 hour'");

  it('gets a code of unambiguous letters, and the address and interval of polling', async () => {
    const { json } = await ask();
    expect(json).toMatchObject({
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: `${app.baseUrl}/device`,
      verification_uri_complete: `${app.baseUrl}/device?user_code=${json.user_code}`,
      expires_in: 600,
      interval: 5,
    });
  });

  it('adds no security key: the key of a stranger who sent the code would outlive the session', async () => {
    const codes = await newCodes({ scope: 'openid svc:credentials' });
    expect((await decide(ada, 'approve', codes.user_code)).status).toBe(200);
    const { access_token: token } = (await poll(codes)).json;
    const headers = { authorization: `Bearer ${token}`, origin: '' };
    const stranger = app.client();
    expect((await stranger.get('/v1/keys', { headers })).status).toBe(200);
    for (const step of ['start', 'complete']) {
      const body = step === 'start' ? {} : { state: 'x', credential: {} };
      const path = `/v1/keys/register/${step}`;
      const answer = await stranger.post(path, body, { headers, address: newAddress() });
      expect(outcomeOf(answer)).toEqual([401, 'insufficient_user_authentication']);
    }
  });

  it('is shown with its description, approved with a touch, and gets the access of its user', async () => {
    const answer = await ask({}, { 'user-agent': 'svc/1.0 <i>x</i>' });
    const codes = answer.json as Codes;
    expect(outcomeOf(await poll(codes))).toEqual([400, 'authorization_pending']);
    const form = await ada.get(`/device?user_code=${codes.user_code}`);
    expect(form.text).toContain(`value="${codes.user_code}"`);
    expect(form.text).not.toContain('<script>');

    const typed = ` ${codes.user_code.toLowerCase().replace('-', ' ')}`;
    const page = await show(ada, typed);
    expect(page.status).toBe(200);
    for (const shown of ['svc command line', 'our own application', codes.user_code, ADA]) {
      expect(page.text).toContain(shown);
    }
    expect(page.text).toMatch(/Address: <strong>10\./);
    expect(page.text).not.toContain('svc/1.0');

    const approved = await decide(ada, 'approve', codes.user_code);
    expect([approved.status, approved.json]).toEqual([200, { status: 'approved' }]);
    await waitOut();
    const tokens = await poll(codes);
    expect(tokens.json).toMatchObject({
      token_type: 'Bearer',
      scope: 'openid svc:credentials',
    });
    expect(tokens.json.refresh_token).toBeUndefined();
    const claims = claimsOf(tokens.json.id_token);
    expect(claims).toMatchObject({
      aud: 'svc-cli',
      hardware_verified: true,
      amr: ['hwk', 'pin', 'user'],
    });
    const userinfo = await app.client().get('/oauth/userinfo', {
      headers: { authorization: `Bearer ${tokens.json.access_token}` },
    });
    expect(userinfo.json).toMatchObject({ sub: claims['sub'] });
    expect((await auditOf(app.dataSource, ADA)).at(-2)).toMatchObject({
      type: 'device_approved',
      details: { client_id: 'svc-cli', device: { user_agent: 'svc/1.0 <i>x</i>' } },
    }); // the last event is about the token
    // Neither the code nor its approval can be used a second time. The poll comes last, because a
    // second use of the code ends its grant, and the code with it, at once or soon.
    expect(outcomeOf(await decide(ada, 'approve', codes.user_code))).toEqual([
      400,
      'invalid_state',
    ]);
    expect(outcomeOf(await decide(ada, 'deny', codes.user_code))).toEqual([400, 'invalid_state']);
    await waitOut();
    expect(outcomeOf(await poll(codes))).toEqual([400, 'invalid_grant']);
  });

  it('never gets svc:admin, with a DPoP key as well', async () => {
    const codes = await newCodes();
    expect((await show(ada, codes.user_code)).text).not.toContain('Administer');
    await decide(ada, 'approve', codes.user_code);
    const dpop = await (await newDpopKey()).proof('POST', `${app.baseUrl}/oauth/token`);
    expect((await poll(codes, 'svc-cli', { dpop })).json).toMatchObject({
      token_type: 'DPoP',
      scope: 'openid svc:credentials',
    });
  });

  it('of another client never gets the service’s own scopes', async () => {
    const answer = await ask({ client_id: television, scope: 'openid svc:credentials' });
    expect(outcomeOf(answer)).toEqual([400, 'invalid_scope']);
  });

  it('of svc-cli has its own session: the browser logs out, and it stays', async () => {
    const { client: carol } = await app.enrolled('carol@device.example');
    const own = await newCodes();
    const other = await newCodes({ client_id: television, scope: 'openid' });
    const approved = [
      await decide(carol, 'approve', own.user_code),
      await decide(carol, 'approve', other.user_code),
    ];
    expect(approved.map(({ status }) => status)).toEqual([200, 200]);
    const tokens = [await poll(own), await poll(other, television)];
    const [session] = await rows(
      app.dataSource,
      `SELECT s.level, s.client_id, s.authenticator_id IS NOT NULL AS keyed, s.auth_time = b.auth_time AS same
       FROM sessions s JOIN users u ON u.id = s.user_id JOIN sessions b ON b.user_id = u.id AND b.client_id IS NULL
       WHERE u.email = 'carol@device.example' AND s.client_id IS NOT NULL`,
    );
    expect(session).toEqual({ level: 'verified', client_id: 'svc-cli', keyed: true, same: true });
    const statuses = () =>
      Promise.all(
        tokens.map(async ({ json }) => {
          const headers = { authorization: `Bearer ${json.access_token}` };
          return (await app.client().get('/oauth/userinfo', { headers })).status;
        }),
      );
    expect(await statuses()).toEqual([200, 200]);
    await carol.send('POST', '/logout');
    expect(await statuses()).toEqual([200, 401]);
  });

  it('of an application may get a token for its named resource, and for no other', async () => {
    const resource = 'https://orders.example';
    const { clientId } = await addApplication(
      app,
      { ...NATIVE, svc_resource_scopes: 'orders:read' },
      { owner: ADA },
    );
    const codes = await newCodes({ client_id: clientId, scope: 'orders:read', resource });
    expect((await show(ada, codes.user_code)).text).toContain(`Act for you at ${resource}`);
    await decide(ada, 'approve', codes.user_code);
    const { json } = await poll(codes, clientId);
    expect(claimsOf(json.access_token)).toMatchObject({
      aud: resource,
      scope: 'orders:read',
      hardware_verified: true,
    });
  });

  it('is shown without HTML in descriptions from other parties', async () => {
    const { user_code } = await newCodes({ client_id: television, scope: 'openid' });
    const page = await show(bob, user_code);
    expect(page.text).toContain('Television &lt;b&gt;one');
    expect(page.text).toContain('a colleague registered it');
    const { client: eve } = await app.enrolled('eve@elsewhere.example');
    expect((await show(eve, user_code)).text).toContain('has been checked');
  });

  it('gets the refusal when the user refuses', async () => {
    const codes = await newCodes();
    expect((await decide(ada, 'deny', codes.user_code)).json).toEqual({ status: 'denied' });
    expect(outcomeOf(await decide(ada, 'approve', codes.user_code))).toEqual([
      400,
      'invalid_state',
    ]);
    expect(outcomeOf(await poll(codes))).toEqual([400, 'access_denied']);
  });

  it('gets an error when its code has expired, which then cannot be approved', async () => {
    const codes = await newCodes();
    await app.dataSource.query(
      `UPDATE oauth_artifacts SET expires_at = now() - interval '1 s',
         payload = jsonb_set(payload, '{exp}', to_jsonb(extract(epoch FROM now())::int - 1))
       WHERE user_code = $1`,
      [codes.user_code.replace('-', '')],
    );
    expect(outcomeOf(await decide(ada, 'approve', codes.user_code))).toEqual([404, 'not_found']);
    expect(outcomeOf(await poll(codes))).toEqual([400, 'expired_token']);
  });

  it('gets slow_down when it polls too fast, and a longer interval each time', async () => {
    const codes = await newCodes();
    const answers = [await poll(codes), await poll(codes), await poll(codes)];
    expect(answers.map(({ json }) => json.error)).toEqual([
      'authorization_pending',
      'slow_down',
      'slow_down',
    ]);
    const [row] = await rows(
      app.dataSource,
      'SELECT poll_interval FROM oauth_artifacts WHERE user_code = $1',
      [codes.user_code.replace('-', '')],
    );
    expect(row).toEqual({ poll_interval: 15 });
    await waitOut();
    expect(outcomeOf(await poll(codes))).toEqual([400, 'authorization_pending']);
  });

  it('cannot use the code of another client', async () => {
    const codes = await newCodes();
    await decide(ada, 'approve', codes.user_code);
    expect(outcomeOf(await poll(codes, television))).toEqual([400, 'invalid_grant']);
  });

  it('is approved once by 20 at once', async () => {
    const { client: dan } = await app.enrolled('dan@device.example');
    const codes = await newCodes();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => decide(dan, 'approve', codes.user_code)),
    );
    const outcomes = answers.map(({ status, json }) => `${status} ${json.code ?? json.status}`);
    expect(outcomes.toSorted()).toEqual([
      '200 approved',
      ...Array.from({ length: 19 }, () => '400 invalid_state'),
    ]);
    const audit = await auditOf(app.dataSource, 'dan@device.example');
    expect(audit.filter(({ type }) => type === 'device_approved')).toHaveLength(1);
    const own = `sessions s JOIN users u ON u.id = s.user_id WHERE u.email = 'dan@device.example' AND s.client_id IS NOT NULL`;
    expect(await count(app.dataSource, own)).toBe(1);
  });

  it('redeems its code once, in 20 requests at once', async () => {
    const codes = await newCodes();
    await decide(ada, 'approve', codes.user_code);
    const answers = await Promise.all(Array.from({ length: 20 }, () => poll(codes)));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });

  it.each(['approve', 'deny'] as const)(
    'leads a browser without a session to the login: %s',
    async (decision) => {
      const { user_code } = await newCodes();
      const signedIn = app.client(); // an upstream login alone: a bootstrap session
      await signedIn.signIn(ADA);
      expect(signedIn.cookie('svc_session')).toBeDefined();
      for (const browser of [app.client(), signedIn]) {
        const page = await show(browser, user_code, { sign_in: 'key' });
        const query = { redirect_to: `/device?user_code=${user_code}`, way: 'key' };
        const location = `/login?${new URLSearchParams(query).toString()}`;
        expect([page.status, page.headers.get('location')]).toEqual([303, location]);
        expect(page.text).not.toContain('svc command line');
        expect(outcomeOf(await decide(browser, decision, user_code))).toEqual([
          401,
          'unauthenticated',
        ]);
      }
      // the code still waits for a decision, so that ada can decide
      expect((await decide(ada, decision, user_code)).status).toBe(200);
    },
  );

  it('leads to the identity provider that the form names, and back to the code', async () => {
    const { user_code } = await newCodes();
    const browser = app.client();
    const answer = await show(browser, user_code, { provider: 'demo' });
    expect(answer.status).toBe(303);
    const location = answer.headers.get('location') ?? '';
    expect(new URL(location, app.baseUrl).origin).not.toBe(app.baseUrl);
    await browser.signIn(ADA, `/device?user_code=${user_code}`);
    await browser.logIn(adasKey);
    expect((await show(browser, user_code)).text).toContain('svc command line');
  });

  it('needs a touch of the last minute, and says so (RFC 9470 §3)', async () => {
    const { user_code } = await newCodes();
    await app.dataSource.query(
      "UPDATE sessions SET auth_time = now() - interval '61 s' WHERE level = 'verified'",
    );
    expect((await show(ada, user_code)).status).toBe(200);
    const refused = await decide(ada, 'approve', user_code);
    expect(outcomeOf(refused)).toEqual([401, 'insufficient_user_authentication']);
    expect(refused.headers.get('content-type')).toContain('application/problem+json');
    const challenge = refused.headers.get('www-authenticate') ?? '';
    expect(challenge).toMatch(/^Bearer error="insufficient_user_authentication", /);
    expect(challenge).toContain('max_age="60"');
    expect((await ada.logIn(adasKey)).status).toBe(200);
    expect((await decide(ada, 'approve', user_code)).json).toEqual({ status: 'approved' });
  });

  it('is refused without a touch', async () => {
    const { user_code } = await newCodes();
    await app.dataSource.query(
      "UPDATE sessions SET auth_time = now() - interval '1 h' WHERE level = 'verified'",
    );
    expect((await decide(ada, 'deny', user_code)).status).toBe(200);
  });

  it('of a client that registered itself gets nothing, with any registration', async () => {
    const { clientId } = await addApplication(app, NATIVE, { kind: 'dynamic' });
    const codes = await newCodes({ client_id: clientId, scope: 'openid' });
    expect((await show(ada, codes.user_code)).status).toBe(403);
    expect(outcomeOf(await decide(ada, 'approve', codes.user_code))).toEqual([
      403,
      'issuance_refused',
    ]);
    expect(outcomeOf(await poll(codes, clientId))).toEqual([400, 'authorization_pending']);
  });

  it('is approved only by the service’s own page', async () => {
    const { user_code } = await newCodes();
    for (const origin of ['https://evil.example', '']) {
      for (const path of ['/device/approve', '/device/deny', '/device']) {
        const answer = await ada.send('POST', path, {
          address: newAddress(),
          body: path === '/device' ? `user_code=${user_code}` : { user_code },
          headers: {
            origin,
            ...(path === '/device' && { 'content-type': 'application/x-www-form-urlencoded' }),
          },
        });
        expect([path, answer.status]).toEqual([path, 403]);
      }
    }
    expect((await show(ada, user_code)).status).toBe(200);
  });

  it('cannot be approved by a deactivated user', async () => {
    const { client: fay } = await app.enrolled('fay@device.example');
    const codes = await newCodes();
    await decide(fay, 'approve', codes.user_code);
    const later = await newCodes();
    await app.dataSource.query(
      "UPDATE users SET active = false WHERE email = 'fay@device.example'",
    );
    expect(outcomeOf(await decide(fay, 'approve', later.user_code))).toEqual([
      401,
      'unauthenticated',
    ]);
    // the code that was approved before the deactivation is refused, too
    expect(outcomeOf(await poll(codes))).toEqual([400, 'invalid_grant']);
  });

  describe('a device code that is guessed', () => {
    const wrong = (index: number) => `BBBB-BB${'BCDFGHJKLMNPQRSTVWXZ'.charAt(index)}B`;

    it('is not found after five wrong guesses in a row, for ten minutes, on every path', async () => {
      const { user_code } = await newCodes();
      for (let index = 0; index < 4; index += 1) {
        const page = await show(ada, wrong(index));
        expect([page.status, page.headers.get('content-type')]).toEqual([
          404,
          'text/html; charset=utf-8',
        ]);
        expect(page.text).toContain('No device waits with this code');
      }
      expect(outcomeOf(await decide(ada, 'approve', wrong(4)))).toEqual([404, 'not_found']);
      const locked = await show(ada, user_code);
      expect(locked.status).toBe(429);
      expect(locked.headers.get('content-type')).toBe('text/html; charset=utf-8');
      const wait = Number(locked.headers.get('retry-after'));
      expect(wait).toBeGreaterThan(500);
      expect(wait).toBeLessThanOrEqual(600);
      expect(locked.text).not.toContain('svc command line');
      for (const decision of ['approve', 'deny'] as const) {
        const answer = await decide(ada, decision, user_code);
        expect(outcomeOf(answer)).toEqual([429, 'rate_limited']);
      }
      expect((await show(bob, user_code)).status).toBe(200); // bob has typed no wrong code
      const waited = (seconds: number) =>
        app.dataSource.query(
          'UPDATE oauth_user_code_tries SET last_at = last_at - make_interval(secs => $1)',
          [seconds],
        );
      await waited(590);
      expect((await show(ada, user_code)).status).toBe(429);
      await waited(11);
      expect((await show(ada, user_code)).status).toBe(200);
    });

    it('stays locked after a correct code of the attacker’s own between the guesses', async () => {
      const { user_code } = await newCodes();
      const statuses: number[] = [];
      for (const code of [wrong(0), wrong(1), wrong(2), user_code, wrong(3), user_code, wrong(4)]) {
        statuses.push((await show(ada, code)).status);
      }
      expect(statuses).toEqual([404, 404, 404, 200, 404, 200, 404]);
      expect((await show(ada, user_code)).status).toBe(429);
    });

    it('is answered five times, for any number of guesses at once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) => show(ada, wrong(index))),
      );
      expect(answers.filter(({ status }) => status === 404)).toHaveLength(5);
      expect(answers.filter(({ status }) => status === 429)).toHaveLength(15);
    });
  });
});
