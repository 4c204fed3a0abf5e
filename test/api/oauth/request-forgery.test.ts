import { hash } from 'node:crypto';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { Global, Module } from '@nestjs/common';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  OUTBOUND_OPTIONS,
  type OutboundOptions,
} from '../../../src/platform/outbound/outbound-http.service.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { addApplication } from '../../support/applications.js';
import { newAddress, type Client } from '../../support/client.js';
import { sendSecurely } from '../../support/https-client.js';
import {
  CALLBACK,
  authorize,
  newClientKeys,
  newPkce,
  parameterOf,
  type ClientKeys,
} from '../../support/oauth-flow.js';
import { startSecureApp, type SecureApp } from '../../support/secure-app.js';
import { makeTlsAuthority } from '../../support/tls-authority.js';

/**
 * The IP addresses that the test's DNS gives for host names. `rebinding.example` is not listed: its
 * address changes at each look-up.
 */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'private.example': ['10.1.2.3'],
  'mixed.example': ['203.0.114.7', '192.168.0.1'],
  'mixed6.example': ['2606:4700::1111', 'fd00::1'],
  'metadata.google.internal': ['169.254.169.254'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'nat64.example': ['64:ff9b::a9fe:a9fe'],
  'nowhere.example': [],
};
let rebound = 0;
const resolve: OutboundOptions['resolve'] = async (name) => {
  if (name === 'rebinding.example') {
    rebound += 1;
    return rebound % 2 === 1 ? ['203.0.114.7'] : ['127.0.0.1'];
  }
  return NAMES[name] ?? [];
};

@Global()
@Module({
  providers: [{ provide: OUTBOUND_OPTIONS, useValue: { resolve } }],
  exports: [OUTBOUND_OPTIONS],
})
class NamesOfThisTest {}

/** Spellings of hosts that a client may register. Each leads to a forbidden address. */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '127.255.255.254',
  'localhost',
  'LOCALHOST',
  '0.0.0.0',
  '0',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '169.254.170.2',
  '0xa9fea9fe',
  '[::ffff:169.254.169.254]',
  '[fd00:ec2::254]',
  '168.63.129.16',
  '100.64.0.1',
  '100.100.100.200',
  '192.0.0.192',
  '192.0.2.1',
  '198.51.100.1',
  '203.0.113.1',
  '198.18.0.1',
  '198.19.255.255',
  '224.0.0.1',
  '239.255.255.255',
  '240.0.0.1',
  '255.255.255.255',
  '192.88.99.1',
  '[fe80::1]',
  '[fec0::1]',
  '[fc00::1]',
  '[ff02::1]',
  '[2001:db8::1]',
  '[2001::1]',
  '[2002:7f00:1::]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b:1::a00:1]',
  '[100::1]',
  '[3fff::1]',
  ...Object.keys(NAMES),
] as const;

describe('addresses that clients choose', () => {
  let secure: SecureApp;
  let trap: Server;
  let connections = 0;
  let port: number;
  beforeAll(async () => {
    trap = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((listening) => {
      trap.listen(0, '::', listening);
    });
    ({ port } = trap.address() as AddressInfo);
    secure = await startSecureApp({}, { modules: [NamesOfThisTest] });
  });
  afterAll(async () => {
    await secure.app.close();
    trap.close();
  });

  const register = (metadata: object) =>
    sendSecurely(`${secure.baseUrl}/oauth/register`, {
      ca: secure.authority.ca,
      method: 'POST',
      text: JSON.stringify({ redirect_uris: [CALLBACK], ...metadata }),
      headers: { 'x-forwarded-for': newAddress() },
    });

  it.each(HOSTS)('jwks_uri at https://%s is refused at registration', async (host) => {
    const answer = await register({
      token_endpoint_auth_method: 'private_key_jwt',
      jwks_uri: `https://${host}:${port}/jwks.json`,
    });
    expect([answer.status, answer.json]).toEqual([
      400,
      {
        error: 'invalid_client_metadata',
        error_description: 'jwks_uri is not a URL that may be fetched',
      },
    ]);
    expect(connections).toBe(0);
  });

  it.each(HOSTS)('request_uri at https://%s is not fetched', async (host) => {
    const address = `https://${host}:${port}/request.jwt`;
    const registered = await register({ request_uris: [address] });
    expect(registered.status).toBe(201);
    const query = new URLSearchParams({
      client_id: registered.json.client_id as string,
      redirect_uri: CALLBACK,
      response_type: 'code',
      request_uri: address,
    });
    const answer = await secure.get(secure.baseUrl, `/oauth/authorize?${query.toString()}`);
    expect([answer.status, answer.headers['location']]).toEqual([400, undefined]);
    expect(answer.text).toContain('invalid_request_object');
    expect(connections).toBe(0);
  });

  it('schemes, credentials and malformed addresses are refused', async () => {
    for (const address of [
      'http://203.0.114.7/jwks.json',
      'https://user:password@203.0.114.7/',
      'file:///etc/passwd',
      'gopher://203.0.114.7/',
      'https://',
      'jwks.json',
    ]) {
      const answer = await register({
        token_endpoint_auth_method: 'private_key_jwt',
        jwks_uri: address,
      });
      expect([address, answer.status]).toEqual([address, 400]);
      expect(answer.json.error).toBe('invalid_client_metadata');
    }
  });

  it('a name that is rebound between look-ups is connected only at its checked address', async () => {
    rebound = 0;
    const address = `https://rebinding.example:${port}/request.jwt`;
    const registered = await register({ request_uris: [address] });
    const query = new URLSearchParams({
      client_id: registered.json.client_id as string,
      request_uri: address,
    });
    // The first look-up returns a global address, at which no server listens. A second look-up
    // would return loopback.
    const answer = await secure.get(secure.baseUrl, `/oauth/authorize?${query.toString()}`);
    expect(answer.status).toBe(400);
    expect([rebound, connections]).toEqual([1, 0]);
  });

  it('an address that was not registered is not fetched, with any target', async () => {
    const registered = await register({ request_uris: ['https://one.example/request.jwt'] });
    for (const address of ['https://one.example/request.jwt?x', `https://localhost:${port}/`]) {
      const query = new URLSearchParams({
        client_id: registered.json.client_id as string,
        request_uri: address,
      });
      const answer = await secure.get(secure.baseUrl, `/oauth/authorize?${query.toString()}`);
      expect([answer.status, answer.text.includes('request_uri_not_supported')]).toEqual([
        400,
        true,
      ]);
    }
    expect(connections).toBe(0);
  });
});

const ADA = 'ada@request-uri.example';
const clientsOwn = makeTlsAuthority();

@Global()
@Module({
  providers: [{ provide: OUTBOUND_OPTIONS, useValue: { ca: [clientsOwn.ca] } }],
  exports: [OUTBOUND_OPTIONS],
})
class AuthorityOfThisTest {}

describe('a request object by reference, where loopback may be fetched', () => {
  let app: TestApp;
  let ada: Client;
  let keys: ClientKeys;
  let server: HttpsServer;
  let base: string;
  let request = '';
  const paths: string[] = [];
  beforeAll(async () => {
    app = await startTestApp({ modules: [AuthorityOfThisTest] });
    ({ client: ada } = await app.enrolled(ADA));
    keys = await newClientKeys();
    server = createHttpsServer({ cert: clientsOwn.cert, key: clientsOwn.key }, (asked, answer) => {
      paths.push(asked.url ?? '');
      if (asked.url === '/moved.jwt') answer.writeHead(302, { location: '/request.jwt' }).end();
      else if (asked.url === '/large.jwt') answer.end('x'.repeat(100_000));
      else if (asked.url === '/slow.jwt') answer.write('e');
      else if (asked.url === '/missing.jwt') answer.writeHead(404).end(request);
      else answer.end(request);
    });
    await new Promise<void>((listening) => {
      server.listen(0, '127.0.0.1', listening);
    });
    base = `https://localhost:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    await app.close();
    server.closeAllConnections();
    server.close();
  });

  /**
   * Sends an authorization request with a `request_uri`. A fragment can be added to the registered
   * URI and to the requested one.
   */
  async function ask(
    path: string,
    fragments: (content: string) => { registered?: string; requested?: string } = () => ({}),
  ): Promise<URL | string> {
    const address = base + path;
    const { clientId } = await addApplication(
      app,
      {
        redirect_uris: [CALLBACK],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [keys.jwk] },
      },
      { owner: ADA },
    );
    request = await new SignJWT({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: 'openid',
      state: 'from the request object',
      code_challenge: newPkce().challenge,
      code_challenge_method: 'S256',
    })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .setIssuer(clientId)
      .setAudience(app.baseUrl)
      .setExpirationTime('1m')
      .sign(keys.privateKey);
    const { registered = '', requested = '' } = fragments(request);
    await app.dataSource.query(
      `UPDATE oauth_clients SET metadata = metadata || jsonb_build_object('request_uris', jsonb_build_array($2::text))
       WHERE id = $1`,
      [clientId, address + registered],
    );
    return authorize(ada, {
      client_id: clientId,
      request_uri: address + requested,
      state: 'from the query',
    }).catch((error: Error) => error.message);
  }

  const hashOf = (content: string) => `#${hash('sha256', content, 'base64url')}`;

  it.each<readonly [string, (content: string) => { registered?: string; requested?: string }]>([
    ['with its hash, registered without', (content) => ({ requested: hashOf(content) })],
    [
      'with its hash, registered with it',
      (content) => ({ registered: hashOf(content), requested: hashOf(content) }),
    ],
  ])('10.15 %s, is fetched without the fragment', async (_, fragments) => {
    paths.length = 0;
    const url = await ask('/request.jwt', fragments);
    if (typeof url === 'string') throw new Error(url);
    expect(parameterOf(url, 'code')).not.toBe('');
    expect(paths).toEqual(['/request.jwt']);
  });

  it.each<readonly [string, (content: string) => { registered?: string; requested?: string }]>([
    ['registered without', () => ({ requested: hashOf('other content') })],
    [
      'registered with it',
      () => ({ registered: hashOf('other content'), requested: hashOf('other content') }),
    ],
  ])('10.15 with the hash of other content, %s, is refused', async (_, fragments) => {
    expect(await ask('/request.jwt', fragments)).toContain('invalid_request_object');
  });

  it.each<readonly [string, (content: string) => { registered?: string; requested?: string }]>([
    ['without', (content) => ({ registered: hashOf(content) })],
    [
      'with another',
      (content) => ({ registered: hashOf('other content'), requested: hashOf(content) }),
    ],
  ])(
    '10.15 registered with a fragment and requested for %s, is not fetched',
    async (_, fragments) => {
      paths.length = 0;
      expect(await ask('/request.jwt', fragments)).toContain('request_uri_not_supported');
      expect(paths).toEqual([]);
    },
  );

  it('is fetched and verified, and only its own parameters count', async () => {
    const url = await ask('/request.jwt');
    if (typeof url === 'string') throw new Error(url);
    expect(parameterOf(url, 'state')).toBe('from the request object');
    expect(parameterOf(url, 'code')).not.toBe('');
    expect(paths).toEqual(['/request.jwt']);
  });

  it.each(['/moved.jwt', '/large.jwt', '/slow.jwt', '/missing.jwt'])(
    'is refused when it is %s, and redirects nowhere',
    async (path) => {
      paths.length = 0;
      const outcome = await ask(path);
      expect(String(outcome)).toContain('invalid_request_object');
      expect(paths).toEqual([path]);
    },
  );
});
