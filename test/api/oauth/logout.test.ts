import { hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication, type Application } from '../../support/applications.js';
import { cliToken } from '../../support/cli-token.js';
import { newAddress, type Client } from '../../support/client.js';
import { untilWaiting } from '../../support/lock-waiters.js';
import { CALLBACK, authorize, newPkce, postForm } from '../../support/oauth-flow.js';
import { auditOf, count } from '../../support/rows.js';

const AFTERWARDS = 'https://client.example/logged-out';

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const OF_ANOTHER_SERVICE = `${part({ alg: 'none' })}.${part({ aud: 'another-client' })}.`;

describe('a logout on behalf of an application', () => {
  let app: TestApp;
  let application: Application;
  beforeAll(async () => {
    app = await startTestApp();
    await app.enrolled('owner@logout.example');
    application = await addApplication(
      app,
      { redirect_uris: [CALLBACK], post_logout_redirect_uris: [AFTERWARDS] },
      { owner: 'owner@logout.example' },
    );
  });
  afterAll(() => app.close());

  const page = (client: Client, query: Readonly<Record<string, string>> = {}) =>
    client.get(`/oauth/logout?${new URLSearchParams(query).toString()}`, { address: newAddress() });
  const sessions = (token: string) =>
    count(app.dataSource, 'sessions WHERE token_hash = $1', [hash('sha256', token, 'buffer')]);
  const confirm = (client: Client, xsrf: string, fields: Readonly<Record<string, string>> = {}) =>
    client.send('POST', '/oauth/logout/confirm', {
      address: newAddress(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ xsrf, logout: 'yes', ...fields }).toString(),
    });
  const xsrfOf = (text: string) => /name="xsrf" value="([^"]+)"/.exec(text)?.[1] ?? '';

  it.each([
    { who: 'is logged in, and never met an application', meets: false, enrolled: true },
    { who: 'is logged in, and did', meets: true, enrolled: true },
    { who: 'has only signed in upstream', meets: false, enrolled: false },
  ])('asks a user who $who, and ends the session only after the user agrees', async (row) => {
    const email = `${String(row.meets)}-${String(row.enrolled)}@logout.example`;
    const client = row.enrolled ? (await app.enrolled(email)).client : app.client();
    if (!row.enrolled) await client.signIn(email);
    if (row.meets) {
      await authorize(client, {
        client_id: application.clientId,
        response_type: 'code',
        redirect_uri: CALLBACK,
        scope: 'openid',
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
      });
    }
    const asked = await page(client, {
      client_id: application.clientId,
      post_logout_redirect_uri: AFTERWARDS,
      state: 'x',
    });
    expect([asked.status, asked.text.includes('data-at-once')]).toEqual([200, false]);
    expect(asked.text).toContain('Log out?');
    const sessionCookie = client.cookie('svc_session') ?? '';
    expect(await sessions(sessionCookie)).toBe(1);

    expect((await confirm(client, 'a guess')).status).toBe(400);
    expect(await sessions(sessionCookie)).toBe(1);

    const done = await confirm(client, xsrfOf(asked.text));
    expect([done.status, done.headers.get('location')]).toEqual([303, `${AFTERWARDS}?state=x`]);
    expect(client.cookie('svc_session')).toBeUndefined();
    expect(await sessions(sessionCookie)).toBe(0);
  });

  it('lists what the logout ends and what stays, and ends the rest only for a user who asks for it', async () => {
    const { client, key } = await app.enrolled('lists@logout.example');
    await authorize(client, {
      client_id: application.clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const command = await cliToken(app, key, { bound: false });
    const other = app.client();
    await other.logIn(key, { address: newAddress() });
    const isOpen = async () => {
      const headers = { authorization: `Bearer ${command.token}` };
      const answers = [
        await app.client().get('/v1/keys', { headers }),
        await other.get('/v1/keys'),
      ];
      return answers.map(({ status }) => status);
    };
    const asked = await page(client);
    expect(/<ul data-ends>.*?<\/ul>/s.exec(asked.text)?.[0]).toContain(application.clientId);
    const stays = /<ul data-others>.*?<\/ul>/s.exec(asked.text)?.[0] ?? '';
    expect(stays.match(/<li>/g)).toHaveLength(2);
    for (const word of ['svc command line', 'A browser', 'A Node.js program']) {
      expect(stays).toContain(word);
    }
    await confirm(client, xsrfOf(asked.text));
    expect(await isOpen()).toEqual([200, 200]);

    await client.logIn(key, { address: newAddress() });
    const again = await page(client);
    await confirm(client, xsrfOf(again.text), { others: 'yes' });
    expect(await isOpen()).toEqual([401, 401]);
    const ended = await auditOf(app.dataSource, 'lists@logout.example');
    expect(
      ended
        .slice(-3)
        .map(({ type }) => type)
        .toSorted(),
    ).toEqual(['logout', 'session_ended', 'session_ended']);
  });

  it('ends the other sessions also if another request ends the session of the browser meanwhile', async () => {
    const { client, key } = await app.enrolled('meanwhile@logout.example');
    const other = app.client();
    await other.logIn(key, { address: newAddress() });
    const asked = await page(client);
    const token = hash('sha256', client.cookie('svc_session') ?? '', 'buffer');
    let pending: ReturnType<typeof confirm> | undefined;
    await app.dataSource.transaction(async (tx) => {
      await tx.query('DELETE FROM sessions WHERE token_hash = $1', [token]);
      pending = confirm(client, xsrfOf(asked.text), { others: 'yes' });
      await untilWaiting(app.dataSource, 1);
    });
    expect((await pending)?.status).toBe(303);
    expect((await other.get('/v1/keys')).status).toBe(401);
  });

  it('continues at once without a session', async () => {
    const asked = await page(app.client());
    expect([asked.status, asked.text.includes('data-at-once')]).toEqual([200, true]);
  });

  it('redirects only to an address that the application registered', async () => {
    const client = app.client();
    const refused = await page(client, {
      client_id: application.clientId,
      post_logout_redirect_uri: 'https://evil.example/',
    });
    expect([refused.status, refused.headers.get('location')]).toEqual([400, null]);
    const unnamed = await page(client, { post_logout_redirect_uri: 'https://evil.example/' });
    const done = await confirm(client, xsrfOf(unnamed.text));
    expect(done.headers.get('location')).toBe(`${app.baseUrl}/oauth/logout/success`);
  });

  it.each<readonly [string, Readonly<Record<string, string>>, boolean]>([
    ['post_logout_redirect_uri', { post_logout_redirect_uri: 'https://evil.example/' }, true],
    ['id_token_hint', { id_token_hint: 'nonsense' }, true],
    ['id_token_hint', { id_token_hint: OF_ANOTHER_SERVICE }, false],
    ['client_id', { client_id: 'nonsense' }, false],
  ])('says on the page which parameter was wrong: %s, %o', async (name, wrong, isOfClient) => {
    const own = isOfClient ? { client_id: application.clientId } : {};
    const refused = await page(app.client(), { ...own, ...wrong });
    expect(refused.status).toBe(400);
    const named = ['post_logout_redirect_uri', 'id_token_hint', 'client_id'].filter((one) =>
      refused.text.includes(one),
    );
    expect(named).toEqual([name]);
    for (const value of Object.values(wrong)) expect(refused.text).not.toContain(value);
  });

  it.each(['application/json', '*/*', 'text/html', undefined])(
    'shows its errors on a page for every Accept header (%s)',
    async (accept) => {
      const headers: Record<string, string> = accept === undefined ? {} : { accept };
      const answer = await app.client().get('/oauth/logout?id_token_hint=nonsense', { headers });
      expect(answer.status).toBe(400);
      expect(answer.headers.get('content-type')).toMatch('text/html');
      expect(answer.text).not.toContain('nonsense');
    },
  );

  it('confirms the logout on a page of the service, and accepts a POST as RP-Initiated Logout §2 requires', async () => {
    const done = await app.client().get('/oauth/logout/success');
    expect([done.status, done.headers.get('content-type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    const posted = await postForm(app, '/oauth/logout', { state: 'a b' });
    expect([posted.status, posted.headers.get('location')]).toEqual([
      303,
      `${app.baseUrl}/oauth/logout?state=a+b`,
    ]);
  });
});
