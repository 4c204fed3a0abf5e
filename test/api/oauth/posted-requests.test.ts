import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Answer, type Client } from '../../support/client.js';
import { CALLBACK, newPkce, postForm } from '../../support/oauth-flow.js';
import { count } from '../../support/rows.js';

describe('authorization requests sent by POST', () => {
  let app: TestApp;
  let ada: Client;
  let clientId: string;
  beforeAll(async () => {
    app = await startTestApp();
    ({ client: ada } = await app.enrolled('ada@posted.example'));
    ({ clientId } = await addApplication(
      app,
      { redirect_uris: [CALLBACK], token_endpoint_auth_method: 'client_secret_basic' },
      { owner: 'ada@posted.example' },
    ));
  });
  afterAll(() => app.close());

  /**
   * Returns the body of an authorization request of exactly `bytes` bytes, which an unknown
   * parameter fills.
   */
  function request(bytes: number, more: Readonly<Record<string, string>> = {}) {
    const fields = {
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      state: 'a b',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
      ...more,
    };
    const length = new URLSearchParams(fields).toString().length;
    return { ...fields, padding: 'x'.repeat(Math.max(0, bytes - length - '&padding='.length)) };
  }

  async function referenceOf(fields: Readonly<Record<string, string>>): Promise<URL> {
    const answer = await postForm(app, '/oauth/authorize', fields);
    expect([answer.status, answer.text]).toEqual([303, expect.any(String)]);
    return new URL(answer.headers.get('location') ?? '');
  }

  const open = (url: URL, browser = ada): Promise<Answer> =>
    browser.get(url.pathname + url.search, { address: newAddress() });

  it.each([3 * 1024, 20 * 1024, 64 * 1024])(
    '10.words are accepted with %d bytes, by a short reference to the stored request',
    async (bytes) => {
      const url = await referenceOf(request(bytes));
      expect(url.href.length).toBeLessThan(300);
      expect(url.pathname).toBe('/oauth/authorize');
      const answer = await open(url);
      const location = new URL(answer.headers.get('location') ?? '');
      expect(location.href.startsWith(CALLBACK)).toBe(true);
      expect(location.searchParams.get('state')).toBe('a b');
      expect(location.searchParams.get('code')).not.toBeNull();
    },
  );

  it('10.words survive a login', async () => {
    const url = await referenceOf(request(30 * 1024));
    const answer = await open(url, app.client());
    expect([answer.status, answer.headers.get('location')]).toEqual([
      303,
      expect.stringMatching(/^\/interaction\//),
    ]);
  });

  it('10.words are stored for a minute, only under a hash, and for the client that they name', async () => {
    const url = await referenceOf(request(4 * 1024));
    const secret = (url.searchParams.get('request_uri') ?? '').split(':').at(-1) ?? '';
    expect(secret).toMatch(/^[\w-]{43}$/);
    const kept = "oauth_artifacts WHERE model = 'PostedRequest'";
    expect(
      await count(app.dataSource, `${kept} AND payload::text LIKE '%' || $1 || '%'`, [secret]),
    ).toBe(0);
    expect(await count(app.dataSource, `${kept} AND expires_at > now() + interval '61 s'`)).toBe(0);

    const other = new URL(url);
    other.searchParams.set('client_id', 'another');
    expect((await open(other)).status).toBe(404);
    const unnamed = new URL(url);
    unnamed.searchParams.delete('client_id');
    expect((await open(unnamed)).status).toBe(404);

    await app.dataSource.query(
      `UPDATE oauth_artifacts SET payload = jsonb_set(payload, '{exp}', '1') WHERE model = 'PostedRequest'`,
    );
    const late = await open(url);
    expect([late.status, late.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
  });

  it('10.words are not pushed requests: a client that must push is refused', async () => {
    const { clientId: pushing } = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'client_secret_basic',
        require_pushed_authorization_requests: true,
      },
      { owner: 'ada@posted.example' },
    );
    const answer = await open(await referenceOf(request(4 * 1024, { client_id: pushing })));
    const location = new URL(answer.headers.get('location') ?? '');
    expect(location.searchParams.get('error')).toBe('invalid_request');
  });

  it('10.words are deleted after their expiry when the next one is stored', async () => {
    const kept = () => count(app.dataSource, "oauth_artifacts WHERE model = 'PostedRequest'");
    for (let n = 0; n < 3; n += 1) await referenceOf(request(3 * 1024));
    const url = await referenceOf(request(3 * 1024));
    await app.dataSource.query(
      "UPDATE oauth_artifacts SET expires_at = now() - interval '1 s' WHERE model = 'PostedRequest'",
    );
    await referenceOf(request(3 * 1024));
    expect(await kept()).toBe(1);
    expect((await open(url)).status).toBe(404);
  });
});
