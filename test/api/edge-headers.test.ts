import { Body, Controller, Get, Module, Post, Res } from '@nestjs/common';
import type { Response } from 'express';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PUBLIC } from '../../src/platform/http/routing/route-policy.js';
import { Route } from '../../src/platform/http/routing/route.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';

/** The headers that the requirements list, with their values. */
const SECURITY_HEADERS = {
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'x-dns-prefetch-control': 'off',
};
const API = 'no-cache, no-store, must-revalidate';
const UI = 'no-cache';

/** Names of the headers that only some responses have besides those of every response. */
const BODY = 'content-type content-length';
const LIMITED = ['x-ratelimit-limit', 'x-ratelimit-remaining'];
const CORS = 'access-control-allow-origin access-control-expose-headers';
const PREFLIGHT =
  'access-control-allow-methods access-control-allow-headers access-control-max-age';
const OWN = 'x-own transfer-encoding';

/** Header lines of requests in the table below. */
const ASKING = ['Origin: https://friend.example', 'Access-Control-Request-Method: GET'];
const TOO_LARGE = ['Content-Type: application/json', 'Content-Length: 300000'];

/** Sets and clears headers of the response in the ways that a library may do it. */
@Controller('test')
@Route({ tier: 'general', auth: PUBLIC })
class CarelessController {
  @Get('overrides')
  override(@Res() response: Response): void {
    response.writeHead(200, {
      'X-Frame-Options': 'ALLOWALL',
      'Cache-Control': 'public',
      'X-Own': '1',
    });
    response.end('ok');
  }

  @Get('flat')
  flat(@Res() response: Response): void {
    response.writeHead(200, 'Fine', ['cache-control', 'public', 'x-own', '1']);
    response.end('ok');
  }

  @Get('cookies')
  setCookies(@Res() response: Response): void {
    response.setHeader('Set-Cookie', 'before=0');
    const cookies = ['Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'];
    response.writeHead(200, 'Fine', [...cookies, 'Referrer-Policy', 'unsafe-url']);
    response.end('ok');
  }

  @Get('clears')
  clear(@Res() response: Response): void {
    for (const name of response.getHeaderNames()) response.removeHeader(name);
    response.end('ok');
  }

  @Post('reads')
  read(@Body() body: unknown): unknown {
    return body;
  }

  @Get('throws')
  fail(): never {
    throw new Error('something internal');
  }
}

@Module({ controllers: [CarelessController] })
class CarelessModule {}

describe('the headers of every response', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ modules: [CarelessModule], timeouts: { linger: 200 } });
  });
  afterAll(() => app.close());

  /**
   * Sends a request line with headers from a new address. Without a `Host` it adds that of the
   * service.
   */
  const ask = (line: string, headers: readonly string[] = []) => {
    const host = headers.some((header) => header.startsWith('Host:'))
      ? []
      : [`Host: ${new URL(app.baseUrl).host}`];
    const from = `X-Forwarded-For: ${newAddress()}`;
    return rawExchange(app.baseUrl, requestBytes(app.baseUrl, line, [...host, from, ...headers]));
  };

  const ownOriginOnly = 'default-src script-src style-src img-src font-src connect-src base-uri';
  const policy = () =>
    ownOriginOnly
      .split(' ')
      .map((directive) => `${directive} 'self'`)
      .concat("frame-ancestors 'none'", `form-action 'self' ${issuerOf(app)}`)
      .join('; ');

  it.each([
    ['a page', 'GET /', 200, UI, BODY],
    ['a redirect', 'GET /account/keys', 303, UI, `${BODY} location vary`],
    ['a static file', 'GET /static/app.css', 200, UI, `${BODY} etag vary`],
    [
      'a static file that is known',
      'GET /static/app.css',
      304,
      UI,
      'etag vary',
      ['If-None-Match: *'],
    ],
    ['a static file that is not there', 'GET /static/nope', 404, UI, BODY],
    ['liveness', 'GET /health', 200, API, `${BODY} ${CORS}`],
    ['a HEAD', 'HEAD /health', 200, API, `${BODY} ${CORS}`],
    ['the CA key', 'GET /v1/credentials/ssh/ca', 200, API, `${BODY} ${CORS} vary`],
    ['a 401', 'GET /v1/keys', 401, API, `${BODY} ${CORS} www-authenticate`],
    ['a 404 of the API', 'GET /v1/nothing', 404, API, `${BODY} ${CORS}`],
    ['a 404 of OAuth', 'GET /oauth/nothing', 404, API, `${BODY} ${CORS}`],
    ['a 404 of SCIM', 'GET /scim/v2/Nothing', 404, API, `${BODY} ${CORS}`],
    ['a 404 of the pages', 'GET /admin/absent', 404, UI, BODY],
    ['a 404 of a navigation', 'GET /oauth/logout/nothing/here', 404, API, BODY],
    ['a 404 without a route', 'GET /nothing', 404, API, `${BODY} ${CORS}`],
    ['a 405', 'DELETE /health', 405, API, `${BODY} ${CORS} allow`],
    ['a 405 of a page', 'PROPFIND /login', 405, UI, `${BODY} allow`],
    ['a TRACE', 'TRACE /health', 405, API, `${BODY} ${CORS} allow`],
    ['a 413', 'POST /test/reads', 413, API, `${BODY} ${CORS}`, TOO_LARGE],
    ['a 421', 'GET /login', 421, UI, BODY, ['Host: evil.example']],
    ['a 500', 'GET /test/throws', 500, API, `${BODY} ${CORS}`],
    ['an OPTIONS', 'OPTIONS /logout', 204, UI, 'allow'],
    ['an OPTIONS of nothing', 'OPTIONS *', 404, API, `${BODY} ${CORS}`],
    ['a preflight', 'OPTIONS /v1/keys', 204, API, `${CORS} ${PREFLIGHT}`, ASKING],
    ['a preflight of a page', 'OPTIONS /account/keys', 204, UI, '', ASKING],
    ['a handler that writes its own', 'GET /test/overrides', 200, API, `${CORS} ${OWN}`],
    ['a handler that writes them in turn', 'GET /test/flat', 200, API, `${CORS} ${OWN}`],
    ['a handler that clears all', 'GET /test/clears', 200, API, `content-length ${CORS}`],
    ['a target the router cannot read', 'GET http://[/', 400, API, `${BODY} ${CORS}`],
    ['a target without a path', 'GET *', 400, API, `${BODY} ${CORS}`],
    ['a target of another protocol', 'GET ftp://localhost/login', 400, API, `${BODY} ${CORS}`],
    ['a malformed escape', 'GET /v1/keys/%zz', 400, API, `${BODY} ${CORS}`],
    ['a fragment', 'GET /login#x', 400, API, `${BODY} ${CORS}`],
  ])('10.words are on %s, and no others', async (_, line, status, cache, others, headers = []) => {
    const answer = await ask(line, headers);
    expect(answer.status).toBe(status);
    const sent = Object.fromEntries(
      Object.keys(SECURITY_HEADERS).map((name) => [name, answer.header(name)]),
    );
    expect(sent).toEqual(SECURITY_HEADERS);
    expect(answer.header('cache-control')).toBe(cache);
    expect(answer.header('content-security-policy')).toBe(policy());
    expect(answer.header('x-fapi-interaction-id')).toMatch(/^[0-9a-f-]{36}$/);
    // The list also shows that each header is sent once. Strict-Transport-Security is missing,
    // because this connection is not TLS.
    const every = [...Object.keys(SECURITY_HEADERS), 'cache-control', 'content-security-policy'];
    const plumbing = ['x-fapi-interaction-id', 'date', 'connection'];
    const expected = [...every, ...LIMITED, ...plumbing, ...others.split(' ').filter(Boolean)];
    const names = answer.headers.map(([name]) => name.toLowerCase());
    expect(names.toSorted()).toEqual(expected.toSorted());
  });

  it('do not replace the headers that a handler may set', async () => {
    for (const path of ['/test/overrides', '/test/flat']) {
      const answer = await ask(`GET ${path}`);
      expect(answer.header('x-own')).toBe('1');
    }
  });

  it('do not damage a header that may occur twice', async () => {
    const answer = await ask('GET /test/cookies');
    const cookies = answer.headers.filter(([name]) => name.toLowerCase() === 'set-cookie');
    expect(cookies.map(([, value]) => value)).toEqual(['a=1', 'b=2']);
    expect(answer.header('referrer-policy')).toBe('strict-origin-when-cross-origin');
  });

  it('return the interaction id of the client, and replace a malformed one', async () => {
    const id = '6ba7b810-9dad-41d1-80b4-00c04fd430c8';
    const returned = async (sent: string) =>
      (await app.client().get('/health', { headers: { 'x-fapi-interaction-id': sent } })).headers;
    expect((await returned(id)).get('x-fapi-interaction-id')).toBe(id);
  });

  it.each(['A.b_C-9', 'x'.repeat(128), '6BA7B810-9DAD-41D1-80B4-00C04FD430C8'])(
    '10.words return an interaction id unchanged: %s',
    async (sent) => {
      const headers = { 'x-fapi-interaction-id': sent };
      const answer = await app.client().get('/health', { headers });
      expect(answer.headers.get('x-fapi-interaction-id')).toBe(sent);
    },
  );

  it.each(['x'.repeat(129), 'a b', 'a,b', 'a"b'])(
    '10.words replace an interaction id of other characters or more than 128: %s',
    async (sent) => {
      const headers = { 'x-fapi-interaction-id': sent };
      const answer = await app.client().get('/health', { headers });
      expect(answer.headers.get('x-fapi-interaction-id')).toMatch(/^[0-9a-f-]{36}$/);
    },
  );
});

describe('a request without a route', () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  it.each([
    ['/v1/nothing', 'application/problem+json', 'not_found'],
    ['/api/v1/org/nothing', 'application/problem+json', 'not_found'],
    ['/oauth/nothing', 'application/json', 'invalid_request'],
    ['/scim/v2/Nothing', 'application/scim+json', '"404"'],
    ['/admin/absent', 'text/html', 'Not found'],
    ['/oauth/logout/nothing/here', 'text/html', 'Not found'],
    ['/oauth/callback/nothing', 'text/html', 'Not found'],
  ])('gets 404 in the error format of %s', async (path, type, content) => {
    const answer = await app.client().get(path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toContain(type);
    expect(answer.text).toContain(content);
  });

  it('gets 404 at other paths in a format that its client accepts', async () => {
    const page = await app.client().get('/nothing', { headers: { accept: 'text/html' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([
      404,
      expect.stringContaining('html'),
    ]);
    const json = await app.client().get('/nothing', { headers: { accept: '*/*' } });
    expect([json.status, json.json.code]).toEqual([404, 'not_found']);
  });

  it.each([
    ['DELETE', '/v1/credentials/ssh', 'POST, OPTIONS'],
    ['PUT', '/v1/keys/0192f0c1-0000-7000-8000-000000000000', 'PATCH, DELETE, OPTIONS'],
    ['POST', '/V1/Keys/', 'GET, HEAD, OPTIONS'],
    ['GET', '/login/webauthn/start', 'POST, OPTIONS'],
    ['PROPFIND', '/logout', 'POST, OPTIONS'],
    ['POST', '/oauth/callback', 'GET, OPTIONS'],
  ])('%s %s is 405 and lists the allowed methods', async (method, path, allow) => {
    const answer = await app.client().send(method, path);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow]);
    const asked = await app.client().send('OPTIONS', path);
    expect([asked.status, asked.headers.get('allow')]).toEqual([204, allow]);
  });

  it.each(['/api/v1/org/nothing', '/v1/nothing'])(
    'gets 404 at %s with a query, too',
    async (path) => {
      const answer = await app.client().get(`${path}?x=1`, { address: newAddress() });
      expect([answer.status, answer.json.code]).toEqual([404, 'not_found']);
    },
  );

  it.each([
    ['PUT', '/api/v1/org/members', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/v1/credentials/ssh', 'POST, OPTIONS'],
  ])('%s %s is 405 with a query, too', async (method, path, allow) => {
    for (const [sent, status] of [
      [method, 405],
      ['OPTIONS', 204],
    ] as const) {
      const answer = await app.client().send(sent, `${path}?x=1`, { address: newAddress() });
      expect([answer.status, answer.headers.get('allow')]).toEqual([status, allow]);
    }
  });

  it('for a link preview does not spend the state of a sign-in', async () => {
    const answer = await app.client().send('HEAD', '/oauth/callback');
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, OPTIONS']);
  });
});

function issuerOf({ config }: TestApp): string {
  const [provider] = config.upstream.providers;
  return new URL(provider?.type === 'oidc' ? provider.issuer : '').origin;
}
