import { request } from 'node:http';
import { text as bodyOf } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Views } from '#platform/http/views/views.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Answer, Client } from '../support/client.js';
import { headOf, RawConnection } from '../support/raw-connection.js';

let app: TestApp;

beforeAll(async () => {
  app = await startTestApp({ environment: { SVC_ORG_NAME: 'Fish & "Chips"' } });
});

afterAll(() => app.close());

/**
 * Creates a user with a key. Returns a client with an upstream login of the user, and without a key
 * authentication.
 */
async function signedInWithKey(email: string): Promise<Client> {
  await app.enrolled(email);
  const client = app.client();
  await client.signIn(email);
  return client;
}

describe('every page', () => {
  /** The responses to requests for each kind of page, errors included. */
  let pages: Answer[];

  beforeAll(async () => {
    const nobody = app.client();
    const newcomer = app.client();
    await newcomer.signIn('newcomer@example.com');
    const waiting = await signedInWithKey('waiting@example.com');
    const { client: verified } = await app.enrolled('verified@example.com');
    pages = await Promise.all([
      nobody.get('/'),
      nobody.get('/login'),
      nobody.get('/login?provider=nobody'),
      nobody.get('/nothing-here', { headers: { accept: 'text/html' } }),
      newcomer.get('/'),
      newcomer.get('/login'),
      newcomer.get('/enroll'),
      waiting.get('/'),
      waiting.get('/login'),
      waiting.get('/enroll'),
      verified.get('/'),
      verified.get('/login'),
      verified.get('/account/keys'),
    ]);
  });

  it('carries the strict Content-Security-Policy and needs no exception', async () => {
    const provider = /form-action 'self' http:\/\/127\.0\.0\.1:\d+$/;
    for (const page of pages) {
      const policy = page.headers.get('content-security-policy') ?? '';
      expect(policy).toMatch(/^default-src 'self'; script-src 'self'; style-src 'self'; /);
      expect(policy).toMatch(provider);
      expect(policy).not.toContain('unsafe-inline');
      expect(page.headers.get('x-frame-options')).toBe('DENY');
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');

      expect(page.text).not.toMatch(/<script(?![^>]* src="\/static\/)/);
      expect(page.text).not.toMatch(/<style|\sstyle=|\son\w+=/i);
      expect(page.text).not.toMatch(/(?:src|href)="(?:https?:)?\/\/(?!localhost)/);
    }
  });

  it('has one heading, a title, the organization, a language and a skip link', async () => {
    for (const { text } of pages) {
      expect(text.match(/<h1[ >]/g)).toHaveLength(1);
      expect(text).toMatch(/<title>[^<]+ · Fish &amp; &quot;Chips&quot;<\/title>/);
      expect(text).toMatch(/^<!doctype html>\n<html lang="en"(?: data-session="[0-9a-f-]{36}")?>/);
      expect(text).toContain('href="#content"');
      expect(text).not.toMatch(/undefined|\[object|&amp;lt;/);
    }
  });

  it('loads the scripts of its composition root before its own', () => {
    const relyingParty = { id: 'localhost', name: 'svc', organizationName: 'svc' };
    const views = new Views({ relyingParty }, ['/static/replaces-credentials.js']);
    for (const folder of ['views/', 'shell/views/']) {
      views.register(new URL(`../../src/features/pages/${folder}`, import.meta.url));
    }
    const html = views.render('error', { title: 'Title', detail: 'Detail' });
    const scripts = [...html.matchAll(/<script type="module" src="([^"]+)"/g)].map(
      ([, src]) => src,
    );
    expect(scripts).toEqual(['/static/replaces-credentials.js', '/static/page.js']);
  });

  it('never shows the session token', async () => {
    const { client } = await app.enrolled('careful@example.com');
    const token = client.cookie('svc_session');
    expect(token).toBeTruthy();
    for (const path of ['/', '/login', '/account/keys', '/enroll']) {
      expect((await client.get(path)).text).not.toContain(token);
    }
  });
});

describe('the login page', () => {
  it.each(['//evil.example', '/\\evil.example', 'https:evil.example', 'javascript:alert(1)'])(
    'leads to the service’s start page instead of %s',
    async (target) => {
      const { client } = await app.enrolled(`${crypto.randomUUID()}@example.com`);
      const { text } = await client.get(`/login?redirect_to=${encodeURIComponent(target)}`);
      expect(text).toContain(`data-redirect-to="${app.baseUrl}/"`);
      expect(text).toContain(`href="${app.baseUrl}/"`);
      expect(text).not.toMatch(/evil|javascript:/);
    },
  );

  it('escapes its target', async () => {
    const target = encodeURIComponent('/?q="><script>x');
    const { text } = await app.client().get(`/login?redirect_to=${target}`);
    expect(text).toContain(`data-redirect-to="${app.baseUrl}/?q=%22%3E%3Cscript%3Ex"`);
    expect(text).not.toContain('<script>x');
  });

  it('offers providers and key without a session, and only the key to a user who has one', async () => {
    const anybody = await app.client().get('/login');
    expect(anybody.text).toMatch(/button primary wide" href="[^"]+provider=demo/);
    expect(anybody.text).toContain('data-ceremony="login"');

    const waiting = await (await signedInWithKey('one-step@example.com')).get('/login');
    expect(waiting.text).toMatch(/button wide primary" type="submit"/);
    expect(waiting.text).not.toMatch(/button primary wide" href/);
  });
});

describe('pages that need a session', () => {
  it.each(['/account/keys', '/enroll'])(
    '%s redirects a browser without a session to the login page and back',
    async (path) => {
      const { status, headers } = await app.client().get(path);
      expect(status).toBe(303);
      expect(headers.get('location')).toBe(`/login?redirect_to=${encodeURIComponent(path)}`);
    },
  );

  it.each(['keys', 'sessions'])(
    '/%s of 0.8 redirects permanently, and takes no write',
    async (name) => {
      const { client } = await app.enrolled(`moved-${name}@example.com`);
      for (const visitor of [client, app.client()]) {
        const { status, headers } = await visitor.get(`/${name}`);
        expect([status, headers.get('location')]).toEqual([301, `/account/${name}`]);
      }
      for (const method of ['POST', 'PUT', 'DELETE']) {
        expect((await client.send(method, `/${name}`)).status).toBe(405);
      }
    },
  );

  it('/account/keys requires the key in a bootstrap session', async () => {
    const client = await signedInWithKey('eager@example.com');
    const { status, headers } = await client.get('/account/keys');
    expect([status, headers.get('location')]).toEqual([
      303,
      '/login?redirect_to=%2Faccount%2Fkeys',
    ]);
  });

  it('/enroll is 403 in a bootstrap session of a user with a key, and in a verified one', async () => {
    const bootstrap = await signedInWithKey('second-key@example.com');
    const { client: verified } = await app.enrolled('third-key@example.com');
    for (const client of [bootstrap, verified]) {
      const { status, text } = await client.get('/enroll');
      expect(status).toBe(403);
      expect(text).toContain('This account has a security key already.');
      expect(text).not.toContain('data-ceremony');
    }
  });

  it('/account/keys shows the keys of the user and of no other user', async () => {
    const { client } = await app.enrolled('mine@example.com');
    const [mine] = (await client.get('/v1/keys')).json.keys;
    const { client: other } = await app.enrolled('theirs@example.com');
    const { text } = await other.get('/account/keys');
    expect(text.match(/data-rename=/g)).toHaveLength(1);
    expect(text).not.toContain(mine.id);
  });
});

describe('POST /logout', () => {
  it.each([
    ['without an Origin', ''],
    ['from another site', 'https://evil.example'],
    ['from an opaque origin', 'null'],
  ])('%s is refused on its own page, and the session stays open', async (_, origin) => {
    const { client } = await app.enrolled(`${crypto.randomUUID()}@example.com`);
    const refused = await client.post('/logout', undefined, { headers: { origin } });
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('<h1>Invalid origin</h1>');
    expect((await client.get('/account/keys')).status).toBe(200);
  });

  it('ends the session, not only the cookie', async () => {
    const { client } = await app.enrolled('leaving@example.com');
    const token = client.cookie('svc_session') ?? '';
    const { status, headers } = await client.post('/logout');
    expect([status, headers.get('location')]).toEqual([303, '/']);
    expect(client.cookie('svc_session')).toBeUndefined();

    client.setCookie('svc_session', token);
    expect((await client.get('/account/keys')).status).toBe(303);
  });

  it.each([
    ['a form with a field', 'application/x-www-form-urlencoded', 'csrf=x'],
    ['a form with a field twice', 'application/x-www-form-urlencoded', 'a=1&a=2'],
    ['a form with files', 'multipart/form-data; boundary=b', '--b\r\n\r\nx\r\n--b--\r\n'],
    ['a text', 'text/plain', 'logout'],
    ['JSON', 'application/json', '{"a":1}'],
    ['no JSON', 'application/json', '{'],
    ['bytes without a type', '', 'x'],
  ])('ends the session whatever the body is: %s', async (_, type, body) => {
    const { client } = await app.enrolled(`${crypto.randomUUID()}@example.com`);
    const cookie = `svc_session=${client.cookie('svc_session')}`;
    const headers = [
      `Cookie: ${cookie}`,
      `Origin: ${app.baseUrl}`,
      `Content-Length: ${body.length}`,
    ];
    if (type !== '') headers.push(`Content-Type: ${type}`);
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'POST /logout', headers) + body);
    await connection.receives('\r\n\r\n');
    // That a second request on the connection is answered shows that the server read the body to
    // its end and dropped it.
    connection.socket.write(headOf(app.baseUrl, 'GET /health', ['Connection: close']));
    await connection.farewell();
    expect(connection.received.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 303', 'HTTP/1.1 200']);
    expect((await app.client().get('/account/keys', { headers: { cookie } })).status).toBe(303);
  });

  it('ends the session and the connection if a body does not end', async () => {
    const { client } = await app.enrolled('endless@example.com');
    const cookie = `svc_session=${client.cookie('svc_session')}`;
    const chunked = 'Transfer-Encoding: chunked';
    const headers = [`Cookie: ${cookie}`, `Origin: ${app.baseUrl}`, chunked];
    const connection = new RawConnection(app.baseUrl);
    connection.socket.write(headOf(app.baseUrl, 'POST /logout', headers));
    const answer = await connection.farewell();
    expect([answer.status, answer.header('connection')]).toEqual([303, 'close']);
    expect((await app.client().get('/account/keys', { headers: { cookie } })).status).toBe(303);
  });

  it('is not a link: GET does not log out', async () => {
    const { client } = await app.enrolled('staying@example.com');
    expect((await client.get('/logout')).status).toBe(405);
    expect((await client.get('/account/keys')).status).toBe(200);
  });
});

describe('an error page', () => {
  it('states the error and offers a way back', async () => {
    const { status, text } = await app.client().get('/login?provider=nobody');
    expect(status).toBe(404);
    expect(text).toContain('<title>Unknown identity provider · ');
    expect(text).toContain('<h1>Unknown identity provider</h1>');
    expect(text).toMatch(/<a [^>]*href="\/"/);
  });

  it('is the response of an unknown address to a browser, and JSON to a program', async () => {
    const browser = await app.client().get('/nope', { headers: { accept: 'text/html,*/*;q=0.8' } });
    expect([browser.status, browser.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
    const program = await app.client().get('/nope', { headers: { accept: 'application/json' } });
    expect([program.status, program.json.code]).toEqual([404, 'not_found']);
  });

  it('escapes text of the address', async () => {
    const { text } = await app.client().get(`/login?provider=${encodeURIComponent('<script>x')}`);
    expect(text).not.toContain('<script>x');
  });
});

describe('/static', () => {
  it.each([
    ['app.css', 'text/css; charset=utf-8'],
    ['webauthn.js', 'text/javascript; charset=utf-8'],
    ['favicon.svg', 'image/svg+xml'],
  ])('serves %s as %s, and not again while it is unchanged', async (name, type) => {
    const plain = { headers: { 'accept-encoding': 'identity' } };
    const first = await app.client().get(`/static/${name}`, plain);
    expect([first.status, first.headers.get('content-type')]).toEqual([200, type]);
    const etag = first.headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    const gzip = { headers: { 'accept-encoding': 'gzip' } };
    const compressed = await app.client().get(`/static/${name}`, gzip);
    expect(compressed.headers.get('content-encoding')).toBe('gzip');
    expect([compressed.text, compressed.headers.get('etag')]).toEqual([
      first.text,
      etag.replace(/"$/, '-gzip"'),
    ]);

    expect(await rawRequest(`/static/${name}`, { 'if-none-match': etag })).toEqual([304, '']);
    const [changed] = await rawRequest(`/static/${name}`, { 'if-none-match': '"old"' });
    expect(changed).toBe(200);
  });

  it.each([
    '/static/',
    '/static/nothing.css',
    '/static/../static.controller.ts',
    '/static/..%2fstatic.controller.ts',
    '/static/%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fpackage.json',
    '/static/..%5cperson.ts',
    '/static//etc/passwd',
    '/static/%2fetc%2fpasswd',
    '/static/app.css%00.js',
    '/static/__proto__',
  ])('answers 404 to %s', async (path) => {
    expect((await rawRequest(path))[0]).toBe(404);
  });
});

/**
 * Sends a GET with exactly this path and these headers: `fetch` would resolve dots in the path, and
 * add `Cache-Control: no-cache` to a conditional request.
 */
function rawRequest(path: string, headers = {}): Promise<[status: number, body: string]> {
  return new Promise((resolve, reject) => {
    const asked = request(app.baseUrl, { path, headers }, (response) => {
      resolve(bodyOf(response).then((body) => [response.statusCode ?? 0, body]));
    });
    asked.on('error', reject).end();
  });
}
