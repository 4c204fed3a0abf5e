import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../../support/app.js';
import { newAddress, type Client } from '../../support/client.js';
import { databaseDigest } from '../../support/database-digest.js';
import { CALLBACK, newPkce, postForm } from '../../support/oauth-flow.js';

const ABSENT = '00000000-0000-7000-8000-000000000000';

/** A POST that a page of the service can send at this moment, with success. */
interface PagePost {
  readonly client: Client;
  readonly path: string;
  readonly body: object;
  /**
   * What binds the POST if its route reads no session cookie. A consent is bound to its user. A
   * refusal gives no access, and is bound only to the browser in which the request began.
   */
  readonly boundTo?: 'user' | 'browser';
}

describe('a write of a page with a real state', () => {
  let app: TestApp;
  let people = 0;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  const enrolled = () => app.enrolled(`ada@page-posts-${(people += 1)}.example`);
  /** Begins a WebAuthn ceremony, and returns the POST that completes it by a key. */
  async function ceremony(
    client: Client,
    path: string,
    answer: (publicKey: never) => object,
  ): Promise<PagePost> {
    const started = await client.post(`${path}/start`, {}, { address: newAddress() });
    const { state, publicKey } = started.json;
    const body = { state, credential: answer(publicKey as never) };
    return { client, path: `${path}/complete`, body };
  }

  async function device(decision: string): Promise<PagePost> {
    const { client } = await enrolled();
    const asked = await postForm(app, '/oauth/device', { client_id: 'svc-cli', scope: 'openid' });
    return { client, path: `/device/${decision}`, body: { user_code: asked.json.user_code } };
  }

  async function consent(decision: string): Promise<PagePost> {
    const { client } = await enrolled();
    const registered = await app.client().post(
      '/oauth/register',
      {
        client_name: 'Stranger',
        redirect_uris: [CALLBACK],
        token_endpoint_auth_method: 'client_secret_post',
      },
      { address: newAddress() },
    );
    const query = new URLSearchParams({
      client_id: registered.json.client_id as string,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid email',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    });
    const { url } = await client.follow(`/oauth/authorize?${query.toString()}`);
    const path = `${url.pathname}/${decision}`;
    return { client, path, body: {}, boundTo: decision === 'consent' ? 'user' : 'browser' };
  }

  const POSTS: Readonly<Record<string, () => Promise<PagePost>>> = {
    'the completion of a login': async () => {
      const { client, key } = await enrolled();
      return ceremony(client, '/login/webauthn', (asked) => key.get(asked, app.baseUrl));
    },
    'the completion of an enrollment': async () => {
      const client = app.client();
      await client.signIn(`ada@page-posts-${(people += 1)}.example`);
      const key = app.newKey();
      return ceremony(client, '/enroll/webauthn', (asked) => key.create(asked, app.baseUrl));
    },
    'the registration of a further key': async () => {
      const { client } = await enrolled();
      const key = app.newKey();
      return ceremony(client, '/v1/keys/register', (asked) => key.create(asked, app.baseUrl));
    },
    'a logout': async () => ({ client: (await enrolled()).client, path: '/logout', body: {} }),
    'the approval of a device': () => device('approve'),
    'the refusal of a device': () => device('deny'),
    'the consent to an application': () => consent('consent'),
    'the refusal of an application': () => consent('deny'),
  };

  it.each(Object.keys(POSTS))(
    'is refused from another origin, without one and from a stale page, and changes nothing: %s',
    async (name) => {
      const post = await POSTS[name]?.();
      if (!post) throw new Error(`there is no post ${name}`);
      const { client, path, body } = post;
      const { client: other } = await enrolled();
      const send = async (headers: Record<string, string>, by = client) =>
        (await by.post(path, body, { address: newAddress(), headers })).status;
      const before = await databaseDigest(app.dataSource);
      for (const origin of ['https://evil.example', 'null', '']) {
        expect(await send({ origin }), origin).toBe(403);
      }
      if (post.boundTo) {
        const changed = post.boundTo === 'user' ? client.copy() : app.client();
        changed.setCookie('svc_session', other.cookie('svc_session') ?? '');
        expect(await send({}, changed)).toBe(404);
      } else expect(await send({ 'svc-session': ABSENT })).toBe(409);
      expect(await databaseDigest(app.dataSource)).toEqual(before);
      // The same POST succeeds with the right headers: nothing else was wrong with it, and the
      // refusals did not use it up.
      expect(await send({})).toBeLessThan(304);
      expect(await databaseDigest(app.dataSource)).not.toEqual(before);
    },
  );

  it('is a logout at an application’s wish: without the secret of the form it ends no session', async () => {
    const { client } = await enrolled();
    await client.get('/oauth/logout');
    const answer = await client.send('POST', '/oauth/logout/confirm', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'logout=yes&xsrf=guessed',
    });
    expect(answer.status).toBe(400);
    expect((await client.get('/v1/keys')).status).toBe(200);
  });

  it('states the session of its page, also where the page asks about a device', async () => {
    const { client } = await enrolled();
    const asked = await postForm(app, '/oauth/device', { client_id: 'svc-cli', scope: 'openid' });
    const page = await client.send('POST', '/device', {
      address: newAddress(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `user_code=${asked.json.user_code}`,
    });
    const home = await client.get('/');
    const stated = ({ text }: { text: string }) =>
      /<html[^>]*data-session="([^"]+)"/.exec(text)?.[1];
    expect(stated(page)).toBe(stated(home));
    expect(stated(page)).toMatch(/^[\da-f-]{36}$/);
  });
});
