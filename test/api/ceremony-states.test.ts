import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SoftwareKey } from '@svc/stand-ins/software-key';
import { CleanUp } from '../../src/domain/admin/clean-up/clean-up.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';

describe('the state of a ceremony', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  const startLogin = async (client: Client) =>
    (await client.post('/login/webauthn/start', {})).json;
  const startEnrollment = async (client: Client) =>
    (await client.post('/enroll/webauthn/start', {})).json;
  const newcomer = async (email: string) => {
    const client = app.client();
    await client.signIn(email);
    return client;
  };
  const invalid = [400, 'invalid_state'];

  it('is refused a second time, after a success', async () => {
    const { key } = await app.enrolled('twice@acme.example');
    const client = app.client();
    const { state, publicKey } = await startLogin(client);
    const complete = () => {
      const same = app.client();
      same.setCookie('svc_browser', client.cookie('svc_browser') ?? '');
      return same.post('/login/webauthn/complete', {
        state,
        credential: key.get(publicKey, app.baseUrl),
      });
    };
    expect((await complete()).status).toBe(200);
    const again = await complete();
    expect([again.status, again.json.code]).toEqual(invalid);
  });

  it('is refused a second time, after a clean-up by a database whose clock is 9 minutes ahead', async () => {
    const { key } = await app.enrolled('ahead@acme.example');
    const client = app.client();
    const { state, publicKey } = await startLogin(client);
    const complete = () => {
      const same = app.client();
      same.setCookie('svc_browser', client.cookie('svc_browser') ?? '');
      return same.post('/login/webauthn/complete', {
        state,
        credential: key.get(publicKey, app.baseUrl),
      });
    };
    expect((await complete()).status).toBe(200);
    await app.dataSource.query(
      `UPDATE spent_tokens SET expires_at = expires_at - interval '9 minutes'`,
    );
    await app.nest.get(CleanUp, { strict: false }).run();
    const again = await complete();
    expect([again.status, again.json.code]).toEqual(invalid);
  });

  it('is refused a second time, after a failure', async () => {
    const client = await newcomer('twice-failed@acme.example');
    const { state, publicKey } = await startEnrollment(client);
    const wrong = await client.post('/enroll/webauthn/complete', { state, credential: {} });
    expect([wrong.status, wrong.json.code]).toEqual([400, 'attestation_rejected']);
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const again = await client.post('/enroll/webauthn/complete', { state, credential });
    expect([again.status, again.json.code]).toEqual(invalid);
  });

  it('is refused from another browser', async () => {
    const { key } = await app.enrolled('other-browser@acme.example');
    const { state, publicKey } = await startLogin(app.client());
    const other = app.client();
    await startLogin(other); // so that this client has a browser cookie of its own
    for (const thief of [other, app.client()]) {
      const answer = await thief.post('/login/webauthn/complete', {
        state,
        credential: key.get(publicKey, app.baseUrl),
      });
      expect([answer.status, answer.json.code]).toEqual(invalid);
    }
  });

  it('is refused in another session', async () => {
    const [one, two] = [await newcomer('one@acme.example'), await newcomer('two@acme.example')];
    const { state, publicKey } = await startEnrollment(one);
    const answer = await two.post('/enroll/webauthn/complete', {
      state,
      credential: app.newKey().create(publicKey, app.baseUrl),
    });
    expect([answer.status, answer.json.code]).toEqual(invalid);
  });

  it('is refused in another ceremony', async () => {
    const client = await newcomer('ceremony@acme.example');
    const key: SoftwareKey = app.newKey();
    const login = await startLogin(client);
    const enrollment = await startEnrollment(client);
    const credential = key.create(enrollment.publicKey, app.baseUrl);
    const crossed = await client.post('/enroll/webauthn/complete', {
      state: login.state,
      credential,
    });
    expect([crossed.status, crossed.json.code]).toEqual(invalid);
    const backwards = await client.post('/login/webauthn/complete', {
      state: enrollment.state,
      credential: key.get(login.publicKey, app.baseUrl),
    });
    expect([backwards.status, backwards.json.code]).toEqual(invalid);
  });

  it('is refused when any part of it changed, or when it is forged', async () => {
    const client = await newcomer('forged@acme.example');
    const { state, publicKey } = await startEnrollment(client);
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const flipped = `${state.slice(0, -3)}${state.at(-3) === 'A' ? 'B' : 'A'}${state.slice(-2)}`;
    for (const forged of [flipped, '', 'e30', `${state}.`, 'x'.repeat(8000)]) {
      const answer = await client.post('/enroll/webauthn/complete', { state: forged, credential });
      expect([answer.status, answer.json.code]).toEqual(invalid);
    }
    const good = await client.post('/enroll/webauthn/complete', { state, credential });
    expect(good.status).toBe(200); // the forged states did not use up the real one
  });

  it('does not reveal its content', async () => {
    const { state, publicKey } = await startLogin(app.client());
    expect(Buffer.from(state, 'base64url').includes(publicKey.challenge)).toBe(false);
    expect(state).not.toContain(publicKey.challenge);
  });
});

describe('redirect_to', () => {
  let app: TestApp;
  let key: SoftwareKey;
  beforeAll(async () => {
    app = await startTestApp();
    ({ key } = await app.enrolled('redirected@acme.example'));
  });
  afterAll(() => app.close());

  const hostile = [
    '//evil.example',
    '/\\evil.example',
    'https:evil.example',
    '/\t/evil.example',
    'https://evil.example/',
    'javascript:alert(1)',
    '/.//evil.example',
  ];

  it.each(hostile)('%j never leads to another origin after a login', async (target) => {
    const client = app.client();
    const { state, publicKey } = (
      await client.post('/login/webauthn/start', { redirect_to: target })
    ).json;
    const answer = await client.post('/login/webauthn/complete', {
      state,
      credential: key.get(publicKey, app.baseUrl),
    });
    expect(new URL(answer.json.redirect_to, app.baseUrl).origin).toBe(app.baseUrl);
  });

  it.each(hostile)('%j never leads to another origin after a sign-in upstream', async (target) => {
    const page = await app.client().signIn('redirected@acme.example', target);
    expect(page.url.origin).toBe(app.baseUrl);
    const next = page.url.searchParams.get('redirect_to') ?? '';
    expect(new URL(next, app.baseUrl).origin).toBe(app.baseUrl);
  });

  it.each(hostile)('%j never leads to another origin after an enrollment', async (target) => {
    const client = app.client();
    await client.signIn(`enrolls-${hostile.indexOf(target)}@acme.example`);
    const { state, publicKey } = (
      await client.post('/enroll/webauthn/start', { redirect_to: target })
    ).json;
    const credential = app.newKey().create(publicKey, app.baseUrl);
    const answer = await client.post('/enroll/webauthn/complete', { state, credential });
    expect(answer.status).toBe(200);
    expect(new URL(answer.json.redirect_to, app.baseUrl).origin).toBe(app.baseUrl);
  });

  it('/account/keys is the final page of the browser', async () => {
    const page = await app.client().signIn('redirected@acme.example', '/account/keys');
    expect(page.url.searchParams.get('redirect_to')).toBe(`${app.baseUrl}/account/keys`);
  });
});
