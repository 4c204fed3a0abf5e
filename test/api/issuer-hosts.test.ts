import { request } from 'node:https';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { IssuerHosts } from '../../src/domain/organizations/issuers/issuer-hosts.js';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import {
  atLabel,
  claimedBy,
  issuerOf,
  jwksAt,
  listenerOf,
  startDocumentKeyGround,
  startReplicaOf,
  type DocumentKeyGround,
} from '../support/issuers.js';
import { orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { rawExchange, requestBytes } from '../support/raw-http.js';
import { RoutePolicies } from '../../src/platform/http/routing/route-policies.js';
import { makeTlsAuthority } from '../support/tls-authority.js';

const SCRAPER = 'the token of a scraper in a test';

requires('moto').describe('the host of a label', () => {
  let ground: DocumentKeyGround;
  let app: TestApp;
  let ada: Client;
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    app = await startTestApp({
      environment: { ...ground.environment, SVC_METRICS_BEARER_TOKEN: SCRAPER },
    });
    ({ client: ada } = await claimedBy(app, 'ada@hosts.example', { label: 'acme' }));
  });
  afterAll(async () => {
    await app.close();
    await ground.close();
  });

  it('serves the metadata of the issuer, as IAM reads it, and names no endpoint that it has not', async () => {
    const answer = await atLabel(app, 'acme', 'GET /.well-known/openid-configuration');
    expect([answer.status, answer.header('content-type')]).toEqual([
      200,
      'application/json; charset=utf-8',
    ]);
    const issuer = issuerOf(app, 'acme');
    expect(JSON.parse(answer.body)).toEqual({
      issuer,
      jwks_uri: `${issuer}/oauth/jwks`,
      response_types_supported: ['id_token'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      claims_supported: expect.arrayContaining(['iss', 'sub', 'aud', 'exp', 'hardware_verified']),
    });
  });

  it('publishes its own key alone, and the base URL does not publish it', async () => {
    const { keys: own } = await jwksAt(app, 'acme');
    const { keys: main } = (await app.client().get('/oauth/jwks')).json;
    expect(own).toHaveLength(1);
    expect(Object.keys(own[0] ?? {}).toSorted()).toEqual(['alg', 'e', 'kid', 'kty', 'n', 'use']);
    const idsOf = (keys: readonly { kid?: string }[]) => keys.map(({ kid }) => kid);
    expect(idsOf(main)).not.toContain(own[0]?.kid);
    const { issuer } = (await app.client().get('/.well-known/openid-configuration')).json;
    expect(issuer).toBe(app.baseUrl);
  });

  it('serves the probes', async () => {
    expect((await atLabel(app, 'acme', 'GET /health')).body).toBe('ok');
    expect((await atLabel(app, 'acme', 'GET /health/ready')).status).toBe(200);
  });

  it('has the headers of every metadata document: readable by all, kept by no cache, no cookie', async () => {
    const answer = await atLabel(app, 'acme', 'GET /oauth/jwks', {
      headers: ['Origin: https://a.example'],
    });
    expect({
      cors: answer.header('access-control-allow-origin'),
      cache: answer.header('cache-control'),
      frames: answer.header('x-frame-options'),
      limit: answer.header('x-ratelimit-limit'),
      cookie: answer.header('set-cookie'),
    }).toEqual({
      cors: '*',
      cache: 'no-cache, no-store, must-revalidate',
      frames: 'DENY',
      limit: '20',
      cookie: undefined,
    });
    expect((await atLabel(app, 'acme', 'HEAD /oauth/jwks')).status).toBe(200);
    const post = await atLabel(app, 'acme', 'POST /oauth/jwks');
    expect([post.status, post.header('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });

  it('is 404 at every other path of the service, in JSON, with a session or without', async () => {
    const served = new Set([
      '/.well-known/openid-configuration',
      '/oauth/jwks',
      '/health',
      '/health/ready',
    ]);
    const others = app.nest
      .get(RoutePolicies)
      .routes.filter(({ template }) => !served.has(template));
    expect(others.length).toBeGreaterThan(90);
    const cookie = `Cookie: svc_session=${ada.cookie('svc_session') ?? ''}`;
    for (const { method, template } of others) {
      const path = template.replaceAll(/:\w+/g, 'x');
      const line = `${method === 'ALL' ? 'GET' : method} ${path}`;
      for (const headers of [['Accept: text/html'], [cookie, `Authorization: Bearer ${SCRAPER}`]]) {
        const answer = await atLabel(app, 'acme', line, { headers });
        expect([line, answer.status, JSON.parse(answer.body).code]).toEqual([
          line,
          404,
          'not_found',
        ]);
      }
    }
    for (const path of [
      '/',
      '/nothing',
      '/.well-known/oauth-authorization-server',
      '/metrics',
      '/*',
      '//oauth/jwks',
    ]) {
      expect([path, (await atLabel(app, 'acme', `GET ${path}`)).status]).toEqual([path, 404]);
    }
  });

  it('is that of an absolute target, and one in capitals', async () => {
    const { port } = new URL(app.baseUrl);
    const get = (target: string, host: string) =>
      rawExchange(app.baseUrl, requestBytes(app.baseUrl, `GET ${target}`, [`Host: ${host}`]));
    const target = `http://acme.localhost:${port}`;
    expect((await get(`${target}/login`, `localhost:${port}`)).status).toBe(404);
    const jwks = await get(`${target}/oauth/jwks`, `localhost:${port}`);
    expect(JSON.parse(jwks.body)).toEqual(await jwksAt(app, 'acme'));
    expect((await get('/oauth/jwks', `ACME.Localhost:${port}`)).body).toBe(jwks.body);
  });

  it.each(['unclaimed', 'acme2', 'x.acme', 'acme.x', 'xn--acme', 'ac', '-acme', 'a'.repeat(64)])(
    'is refused as any foreign host when it is %s',
    async (label) => {
      for (const path of ['/oauth/jwks', '/login', '/v1/keys', '/nothing']) {
        const answer = await atLabel(app, label, `GET ${path}`, { headers: ['Accept: */*'] });
        expect([path, answer.status]).toEqual([path, 421]);
      }
      // /health answers for every host name
      expect((await atLabel(app, label, 'GET /health')).body).toBe('ok');
    },
  );

  it.each([
    ['at another port', () => 'acme.localhost:1'],
    ['without its port', () => 'acme.localhost'],
    ['of an address', () => `acme.127.0.0.1:${new URL(app.baseUrl).port}`],
    ['below another name', () => `acme.evil.example:${new URL(app.baseUrl).port}`],
    ['with a dot at its end', () => `acme.localhost.:${new URL(app.baseUrl).port}`],
    ['our own name', () => new URL(app.baseUrl).host],
    ['with a malformed label', () => `ac_me.localhost:${new URL(app.baseUrl).port}`],
  ])('costs no work of the database when it is another name: %s', async (_, host) => {
    const find = vi.spyOn(IssuerHosts.prototype, 'find');
    try {
      const bytes = requestBytes(app.baseUrl, 'GET /v1/keys', [`Host: ${host()}`]);
      expect([401, 421]).toContain((await rawExchange(app.baseUrl, bytes)).status);
      expect(find).not.toHaveBeenCalled();
    } finally {
      find.mockRestore();
    }
  });

  it('adds no series to the metrics but those of its paths', async () => {
    const series = async () => {
      const headers = { authorization: `Bearer ${SCRAPER}` };
      const { text: lines } = await app.client().get('/metrics', { headers });
      return lines.split('\n').filter((line) => line.includes('acme') || line.includes('probing'));
    };
    await atLabel(app, 'acme', 'GET /probing/1');
    await atLabel(app, 'acme', 'GET /oauth/jwks');
    await atLabel(app, 'probing', 'GET /oauth/jwks');
    expect(await series()).toEqual([]);
  });

  it('is gone on every replica with the commit that releases the label', async () => {
    const { client: eve } = await claimedBy(app, 'eve@brief.example', { label: 'brief' });
    const port = await freePort();
    const replica = await startReplicaOf(app, port, { environment: ground.environment });
    try {
      const listener = listenerOf(port);
      expect((await jwksAt(app, 'brief', listener)).keys).toHaveLength(1);
      expect((await orgApi(eve, 'DELETE', '/issuer')).status).toBe(204);
      for (const where of [app.baseUrl, listener]) {
        const gone = await atLabel(app, 'brief', 'GET /oauth/jwks', { listener: where });
        expect(gone.status).toBe(421);
      }
    } finally {
      await replica.close();
    }
  });

  it('is 503 and tells nothing while the database does not answer', async () => {
    const find = vi.spyOn(IssuerHosts.prototype, 'find');
    find.mockRejectedValue(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }));
    try {
      for (const path of ['/oauth/jwks', '/login']) {
        const answer = await atLabel(app, 'acme', `GET ${path}`, { headers: ['Accept: */*'] });
        expect([answer.status, answer.header('retry-after')]).toEqual([503, '1']);
        expect(answer.body).not.toContain('ECONNREFUSED');
      }
    } finally {
      find.mockRestore();
    }
  });
});

requires('moto').describe('the host of a label under TLS', () => {
  const authority = makeTlsAuthority('authority of the issuers', ['localhost', 'secure.localhost']);
  let ground: DocumentKeyGround;
  let app: TestApp;
  let ports: { readonly https: number; readonly http: number };
  let mutualTls: number;
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    ports = { https: await freePort(), http: await freePort() };
    mutualTls = await freePort();
    app = await startTestApp({
      ports,
      environment: {
        ...ground.environment,
        SVC_BASE_URL: `https://localhost:${ports.https}`,
        SVC_TLS_CERT: authority.cert,
        SVC_TLS_KEY: authority.key,
        SVC_MTLS_PORT: String(mutualTls),
      },
    });
    await app.dataSource.query(
      `WITH org AS (INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'secure.example') RETURNING id)
       INSERT INTO organization_issuers (label, org_id, claimed_at) SELECT 'secure', id, now() FROM org`,
    );
  });
  afterAll(async () => {
    await app.close();
    await ground.close();
  });

  const redirectAt = (label: string, path: string) =>
    rawExchange(
      `http://localhost:${ports.http}`,
      requestBytes('', `GET ${path}`, [`Host: ${label}.localhost:${ports.http}`]),
    );

  it('speaks https with the certificate of the operator, and HSTS', async () => {
    const sent = request({
      port: ports.https,
      host: 'localhost',
      servername: 'secure.localhost',
      ca: authority.ca,
      path: '/.well-known/openid-configuration',
      headers: { host: `secure.localhost:${ports.https}` },
      agent: false,
    }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['strict-transport-security']).toContain('max-age=63072000');
    const { issuer } = JSON.parse(await text(answer)) as { issuer: string };
    expect(issuer).toBe(`https://secure.localhost:${ports.https}`);
  });

  it('redirects from http to https at the same host, and serves nothing else there either', async () => {
    const redirected = await redirectAt('secure', '/oauth/jwks?x=1');
    expect([redirected.status, redirected.header('location')]).toEqual([
      308,
      `https://secure.localhost:${ports.https}/oauth/jwks?x=1`,
    ]);
    expect((await redirectAt('secure', '/login')).status).toBe(404);
    expect((await redirectAt('secure', '/health')).body).toBe('ok');
    expect((await redirectAt('unclaimed', '/oauth/jwks')).status).toBe(421);
  });
});

describe('a service without issuers', () => {
  it('refuses names below its own as any foreign host', async () => {
    const app = await startTestApp();
    try {
      expect((await atLabel(app, 'acme', 'GET /oauth/jwks')).status).toBe(421);
      expect((await atLabel(app, 'acme', 'GET /login')).status).toBe(421);
    } finally {
      await app.close();
    }
  });
});
