import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
} from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { ModulesContainer } from '@nestjs/core';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { Listeners } from '../../src/listeners.service.js';
import { systemClock } from '../../src/platform/clock/clock.js';
import { ErrorRenderer } from '../../src/platform/http/errors/error-renderer.service.js';
import { clientCertificateOf } from '../../src/platform/http/request/client-certificate.js';
import { EDGE_TIMEOUTS } from '../../src/platform/http/edge/edge-timeouts.js';
import { RequestsInFlight } from '../../src/platform/http/server/requests-in-flight.service.js';
import { edgeHeadersFor } from '../../src/platform/http/edge/response-headers.js';
import { ParseErrorResponder } from '../../src/platform/http/server/parse-error-responder.js';
import { RoutePolicies } from '../../src/platform/http/routing/route-policies.js';
import { RouteTable } from '../../src/platform/http/routing/route-table.js';
import { pageActionOf } from '../../src/features/pages/shell/page-action.js';
import { Views } from '../../src/platform/http/views/views.service.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { freePort } from '../support/free-port.js';
import { startLoad } from '../support/load.js';
import { startServerProcess, type ServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { makeTlsAuthority } from '../support/tls-authority.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import '../support/full-scale-only.js';

const own = makeTlsAuthority('authority of today');
const next = makeTlsAuthority('authority of tomorrow');
const fingerprint = (pem: string) => new X509Certificate(pem).fingerprint256;

/** True if this process may listen on the ports 443 and 80, and both are free. */
const realPorts = (await bindable(443)) && (await bindable(80));
const ports = realPorts
  ? { https: 443, http: 80 }
  : { https: await freePort(), http: await freePort() };
const where = realPorts ? '443 and 80' : 'free ports, since 443 and 80 are not to be had here';

async function bindable(port: number): Promise<boolean> {
  const server = await occupy(port).catch(() => undefined);
  if (server) await vacate(server);
  return server !== undefined;
}

/** Listens on a port, so that the service finds it occupied. */
async function occupy(port: number): Promise<Server> {
  const server = createServer().listen(port);
  await once(server, 'listening');
  return server;
}

async function vacate(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await closed;
}

/** Opens a TLS connection to a port. Throws if the server ends it by an alert or a reset. */
async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({
    port,
    host: 'localhost',
    servername: 'localhost',
    ca: own.ca,
    ...options,
  });
  await once(socket, 'secureConnect');
  return socket;
}

/** Returns the SHA-256 fingerprint of the certificate that a port presents on a new connection. */
async function certificateOf(port: number): Promise<string> {
  const socket = await handshake(port, { ca: [own.ca, next.ca] });
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/** Sends a GET over TLS on a connection of its own. */
async function get(port: number, path: string, options: RequestOptions = {}) {
  const sent = request({
    port,
    path,
    host: 'localhost',
    ca: own.ca,
    agent: false,
    ...options,
  }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, text: await text(answer) };
}

/**
 * Sends a request head to the port without TLS. Returns the status, the response head and the body.
 */
async function plainly(head: string): Promise<{ status: number; head: string; body: string }> {
  const socket = connect(ports.http, 'localhost');
  socket.write(`${head}\r\n\r\n`);
  const [answered = '', ...body] = (await text(socket)).split('\r\n\r\n');
  return { status: Number(answered.split(' ')[1]), head: answered, body: body.join() };
}

describe(`with TLS, on ${where}`, () => {
  let app: TestApp;
  let listenPort: number;
  let mtlsPort: number;

  beforeAll(async () => {
    listenPort = await freePort();
    mtlsPort = await freePort();
    app = await startTestApp({
      ports,
      environment: {
        SVC_BASE_URL: `https://localhost${realPorts ? '' : `:${ports.https}`}`,
        SVC_LISTEN_ADDR: `127.0.0.1:${listenPort}`,
        SVC_TLS_CERT: own.cert,
        SVC_TLS_KEY: own.key,
        SVC_MTLS_PORT: String(mtlsPort),
      },
    });
  });
  afterAll(() => app.close());

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('accepts %s', async (version) => {
    for (const port of [ports.https, mtlsPort]) {
      const socket = await handshake(port, { minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
      socket.destroy();
    }
  });

  it('refuses TLS 1.1', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    for (const port of [ports.https, mtlsPort]) {
      await expect(handshake(port, old)).rejects.toThrow(/alert protocol version/);
    }
  });

  it('serves with HSTS on every response', async () => {
    for (const port of [ports.https, mtlsPort]) {
      const health = await get(port, '/health');
      expect([health.status, health.text]).toEqual([200, 'ok']);
      const unknown = await get(port, '/no/such/path');
      expect(unknown.status).toBe(404);
      for (const { headers } of [health, unknown]) {
        expect(headers['strict-transport-security']).toBe(
          'max-age=63072000; includeSubDomains; preload',
        );
      }
    }
  });

  it('ignores SVC_LISTEN_ADDR', async () => {
    expect(await bindable(listenPort)).toBe(true);
  });

  it('refuses plain HTTP on the TLS port', async () => {
    const socket = connect(ports.https, 'localhost');
    socket.end('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(await text(socket).catch(() => '')).not.toContain('ok');
  });

  it.each(['/health', '/health/ready'])('answers %s over plain HTTP too', async (path) => {
    const { status, head } = await plainly(
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close`,
    );
    expect(status).toBe(200);
    // not sent over plain HTTP (RFC 6797 §7.2)
    expect(head).not.toMatch(/^strict-transport-security/im);
  });

  it.each([
    ['GET /login?provider=demo&login_hint=a%40b HTTP/1.1', '/login?provider=demo&login_hint=a%40b'],
    ['POST /v1/credentials/ssh HTTP/1.1', '/v1/credentials/ssh'],
    ['GET //evil.example/x HTTP/1.1', '//evil.example/x'],
    ['GET /\\evil.example HTTP/1.1', '/\\evil.example'],
  ])(
    '10.words %s is redirected to the same path and query of the service’s origin',
    async (line, target) => {
      const { status, head, body } = await plainly(
        `${line}\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close`,
      );
      expect([status, body]).toEqual([308, '']);
      expect(/^location: (.*)$/im.exec(head)?.[1]).toBe(app.config.http.baseUrl + target);
      expect(head).toMatch(/^x-content-type-options: nosniff$/im);
      expect(head).toMatch(/^x-ratelimit-limit: 20$/im);
      expect(head).toMatch(/^x-ratelimit-remaining: 20$/im);
      expect(head).not.toMatch(/^strict-transport-security/im);
    },
  );

  it.each([
    ['a hostile Host', 'GET / HTTP/1.1\r\nHost: evil.example'],
    ['a hostile absolute form', 'GET http://evil.example/x HTTP/1.1\r\nHost: evil.example'],
  ])('%s is misdirected, and logged as a security event', async (_case, head) => {
    const answer = await plainly(`${head}\r\nConnection: close`);
    expect(answer.status).toBe(421);
    expect(answer.head + answer.body).not.toMatch(/^location/im);
    const told = app.log.filter((line) => line.includes('refused a request for the host evil.'));
    expect(told.length).toBeGreaterThan(0);
    for (const line of told) expect(line).toContain('"context":"security"');
  });

  it('a loopback relying party is logged as a security event', () => {
    const told = app.log.filter((line) => line.includes('SVC_RP_ID: is a loopback host'));
    expect(told).toEqual([expect.stringContaining('"context":"security"')]);
  });
});

describe('the listeners alone', () => {
  const client = makeTlsAuthority('authority of clients');
  const opened: { close(): Promise<void> }[] = [];
  let folder: string;
  let mtlsPort: number;

  beforeEach(async () => {
    folder = await makeTemporaryDirectory();
    mtlsPort = await freePort();
    useCertificate(own);
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    await removeDirectory(folder);
  });

  const cert = () => join(folder, 'cert.pem');
  const key = () => join(folder, 'key.pem');
  const useCertificate = (pair: { cert: string; key: string }) => {
    writeFileSync(cert(), pair.cert);
    writeFileSync(key(), pair.key);
  };
  const taken = async (port: number) => {
    const server = await occupy(port);
    opened.push({ close: () => vacate(server) });
  };
  const open = async (
    application: RequestListener = (_request, response) => void response.end('served'),
    clientCaCerts: readonly string[] = [],
  ) => {
    const http = {
      baseUrl: 'https://keys.example.org',
      listen: { host: '127.0.0.1', port: 0 },
      tls: { cert: cert(), key: key() },
      mtls: { port: mtlsPort, clientCaCerts },
      trustedProxies: [],
      corsOrigins: [],
    };
    const relyingParty = { id: 'keys.example.org', name: '', organizationName: '' };
    const config = {
      http,
      relyingParty,
      database: {
        url: 'postgres://user:secret@db.example/svc',
        dataDir: '',
        maxConnections: 1,
        failover: undefined,
        pooler: undefined,
        directUrl: undefined,
      },
      upstream: { providers: [], extraCaCerts: [] },
    };
    const plan = { ports, hosts: [], timeouts: EDGE_TIMEOUTS };
    const inFlight = new RequestsInFlight();
    const modules = new ModulesContainer();
    const listeners = new Listeners(config, plan, inFlight, modules, systemClock);
    const routes = new RoutePolicies([], new RouteTable([]));
    const views = new Views({ relyingParty }, []);
    const parseErrorResponder = new ParseErrorResponder({
      limitsOf: () => [],
      headersOf: edgeHeadersFor([]),
      errorRenderer: new ErrorRenderer({ http }, pageActionOf, views, routes),
      logger: pino({ level: 'silent' }),
      linger: 0,
      onRawResponse: () => undefined,
    });
    await listeners.open({ application, redirect: application, parseErrorResponder });
    opened.push({
      close: async () => {
        await listeners.beforeApplicationShutdown();
        listeners.onApplicationShutdown();
      },
    });
  };

  it('continue without the plain port when it is taken', async () => {
    await taken(ports.http);
    await open();
    expect((await get(ports.https, '/')).text).toBe('served');
  });

  it('do not start when the TLS port is taken', async () => {
    await taken(ports.https);
    await expect(open()).rejects.toThrow(
      new RegExp(`^SVC_TLS_CERT: port ${ports.https}.* \\(EADDRINUSE\\)$`),
    );
  });

  it('do not start when the mutual-TLS port is taken, and close the others', async () => {
    await taken(mtlsPort);
    await expect(open()).rejects.toThrow('SVC_MTLS_PORT: cannot be listened on (EADDRINUSE)');
    expect(await bindable(ports.https)).toBe(true);
    expect(await bindable(ports.http)).toBe(true);
  });

  it('request a client certificate only on the mutual-TLS port, and pass on any certificate', async () => {
    const whoIs: RequestListener = ({ socket }, response) => {
      const { authorized } = socket as TLSSocket;
      const { subject, fingerprint256 } = (socket as TLSSocket).getPeerCertificate();
      response.end(JSON.stringify({ authorized, subject, fingerprint256 }));
    };
    await open(whoIs);
    const presented = { cert: client.cert, key: client.key };
    const stranger = {
      authorized: false,
      subject: { CN: 'localhost' },
      fingerprint256: fingerprint(client.cert),
    };
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
      const options = { ...presented, maxVersion: version };
      expect(JSON.parse((await get(mtlsPort, '/', options)).text)).toEqual(stranger);
    }
    expect(JSON.parse((await get(mtlsPort, '/')).text)).toEqual({ authorized: false });
    expect(JSON.parse((await get(ports.https, '/', presented)).text)).toEqual({
      authorized: false,
    });
  });

  it('10.14 accept every client certificate, and let the route verify its issuer', async () => {
    const whoIs: RequestListener = ({ socket }, response) =>
      void response.end(clientCertificateOf({ socket })?.fingerprint256);
    await open(whoIs, [client.ca]);
    for (const presented of [client, next]) {
      const seen = await get(mtlsPort, '/', { cert: presented.cert, key: presented.key });
      expect(seen.text).toBe(new X509Certificate(presented.cert).fingerprint256);
    }
    expect((await get(mtlsPort, '/')).text).toBe('');
  });

  it('keep the certificate on a SIGHUP when the new one is invalid, and replace it when it is valid', async () => {
    await open();
    const kept = await handshake(ports.https);
    const ask = async () => {
      kept.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
      return String(await once(kept, 'data'));
    };
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);

    for (const [bad, name] of [
      ['half a certifi', 'text'],
      [next.cert, 'of another key'],
    ] as const) {
      writeFileSync(cert(), bad);
      await hangUp();
      for (const port of [ports.https, mtlsPort]) {
        expect(await certificateOf(port), name).toBe(fingerprint(own.cert));
      }
    }
    useCertificate(next);
    await hangUp();
    for (const port of [ports.https, mtlsPort]) {
      expect(await certificateOf(port)).toBe(fingerprint(next.cert));
    }
    // the connection with the earlier certificate stays open
    expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
    kept.destroy();
  });
});

/** Sends SIGHUP to this process, in which the application runs, and waits until it has arrived. */
async function hangUp(): Promise<void> {
  const received = once(process, 'SIGHUP');
  process.kill(process.pid, 'SIGHUP');
  await received;
}

const skipped = realPorts ? '' : ' (skipped: 443 and 80 are not to be had here)';
describe.skipIf(!realPorts)(`node dist/main.js${skipped}`, () => {
  let folder: string;
  let database: TestDatabase;
  let idp: DemoIdentityProvider;
  let mtlsPort: number;
  const running: ServerProcess[] = [];
  const occupied: Server[] = [];

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    database = await createTestDatabase();
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: 'https://localhost/oauth/callback',
    });
  });
  beforeEach(async () => {
    mtlsPort = await freePort();
    writeFileSync(join(folder, 'cert.pem'), own.cert);
    writeFileSync(join(folder, 'key.pem'), own.key);
  });
  afterEach(async () => {
    for (const server of running.splice(0)) {
      server.signal('SIGINT');
      await server.ended;
    }
    for (const server of occupied.splice(0)) await vacate(server);
  });
  afterAll(async () => {
    await idp.close();
    await database.drop();
    await removeDirectory(folder);
  });

  /** Starts `node dist/main.js` with changed variables. An empty string unsets a variable. */
  const start = (changed: Readonly<Record<string, string>> = {}): ServerProcess => {
    const server = startServerProcess(
      'main.js',
      {
        SVC_RP_ID: 'localhost', // SVC_BASE_URL is not set: it follows from this
        SVC_TLS_CERT: 'cert.pem',
        SVC_TLS_KEY: Buffer.from(own.key).toString('base64'),
        SVC_MTLS_PORT: String(mtlsPort),
        SVC_DATABASE_URL: database.url,
        SVC_DATA_DIR: join(folder, 'data'),
        ...providerEnvironment(idp.issuer),
        SVC_LOG_FORMAT: 'json',
        ...changed,
      },
      { cwd: folder },
    );
    running.push(server);
    return server;
  };
  const outcome = async (server: ServerProcess) => {
    const status = await server.ended;
    const lines = server.output().trim().split('\n');
    return { status, complaints: lines.filter((line) => !line.startsWith('{')) };
  };

  it.each([
    ['SVC_TLS_KEY', 'SVC_TLS_CERT'],
    ['SVC_TLS_CERT', 'SVC_TLS_KEY'],
  ])('%s missing is fatal, and the error names it', async (missing, set) => {
    expect(await outcome(start({ [missing]: '' }))).toEqual({
      status: 1,
      complaints: [expect.stringContaining(`${missing}: is required where ${set} is set`)],
    });
  });

  it.each([
    [443, 'SVC_TLS_CERT: port 443, which TLS needs, cannot be listened on (EADDRINUSE)'],
    ['mtls', 'SVC_MTLS_PORT: cannot be listened on (EADDRINUSE)'],
  ] as const)('port %s taken is fatal, in one line', async (port, complaint) => {
    occupied.push(await occupy(port === 'mtls' ? mtlsPort : port));
    expect(await outcome(start())).toEqual({ status: 1, complaints: [complaint] });
    expect(await bindable(80)).toBe(true);
  });

  it('port 80 taken is a warning', async () => {
    occupied.push(await occupy(80));
    const server = start();
    await server.printed(/https:\/\/localhost is served on port 443/);
    expect(server.output()).toContain('port 80 cannot be listened on (EADDRINUSE)');
    expect((await get(443, '/health')).text).toBe('ok');
  });

  it('SVC_LISTEN_ADDR taken is fatal without TLS, in one line', async () => {
    const port = await freePort();
    occupied.push(await occupy(port));
    const plain = { SVC_TLS_CERT: '', SVC_TLS_KEY: '', SVC_MTLS_PORT: '', SVC_RP_ID: '' };
    const server = start({ ...plain, SVC_LISTEN_ADDR: `[::]:${port}` });
    expect(await outcome(server)).toEqual({
      status: 1,
      complaints: ['SVC_LISTEN_ADDR: cannot be listened on (EADDRINUSE)'],
    });
  });

  it('a SIGHUP without TLS changes nothing', async () => {
    const port = await freePort();
    const origin = `http://localhost:${port}`;
    const plain = { SVC_TLS_CERT: '', SVC_TLS_KEY: '', SVC_MTLS_PORT: '', SVC_BASE_URL: origin };
    const server = start({ ...plain, SVC_LISTEN_ADDR: `127.0.0.1:${port}` });
    await server.printed(/is served on port/);
    server.signal('SIGHUP');
    await server.printed(/SIGHUP: without TLS there is nothing to read again/);
    expect((await fetch(`${origin}/health`)).status).toBe(200);
  });

  it.each([
    ['one process', '1'],
    ['two workers', '2'],
  ])('a SIGHUP to %s during the start ends nothing', async (_, n) => {
    const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const port = await freePort();
    const issuer = `http://127.0.0.1:${port}`;
    const endpoints = { authorization_endpoint: issuer, token_endpoint: issuer, jwks_uri: issuer };
    const slow = createHttpServer((_request, response) => {
      asked.resolve();
      response.setHeader('content-type', 'application/json');
      void answered.promise.then(() => response.end(JSON.stringify({ issuer, ...endpoints })));
    });
    occupied.push(slow.listen(port, '127.0.0.1'));
    await once(slow, 'listening');
    const server = start({ SVC_IDP_DEMO_ISSUER: issuer, SVC_WORKERS: n });
    await asked.promise;
    server.signal('SIGHUP');
    answered.resolve();
    const served = n === '1' ? /is served on port 443/ : /2 workers serve/;
    await server.printed(served);
    expect(server.output()).toMatch(served);
  });

  it.each([
    ['one process', '1', /is served on port 443/],
    ['two workers', '2', /2 workers serve/],
  ])('a SIGHUP to %s under load changes the certificate and drops nothing', async (_, n, ready) => {
    writeFileSync(join(folder, 'key.pem'), own.key);
    const server = start({ SVC_TLS_KEY: 'key.pem', SVC_WORKERS: n });
    await server.printed(ready);
    const ca = own.ca + next.ca;
    const options = { origin: 'https://localhost', paths: ['/health'], clients: 8, ca };
    const keeping = startLoad({ ...options, onFarewell: 'leave' });
    const coming = startLoad({ ...options, onFarewell: 'connect', keepAlive: false });
    for (const pair of [next, own, next]) {
      writeFileSync(join(folder, 'cert.pem'), pair.cert);
      writeFileSync(join(folder, 'key.pem'), pair.key);
      server.signal('SIGHUP');
      await expect.poll(() => certificateOf(443)).toBe(fingerprint(pair.cert));
      await keeping.reached(keeping.total + 100);
      await coming.reached(coming.total + 50);
    }
    await Promise.all([keeping.stop(), coming.stop()]);
    expect(keeping.tally).toMatchObject({ lost: [], refused: [], farewells: 0 });
    expect(coming.tally).toMatchObject({ lost: [], refused: [] });
    for (const { tally } of [keeping, coming]) expect([...tally.answers.keys()]).toEqual([200]);
    expect(server.output()).toContain(fingerprint(next.cert));
    expect(await certificateOf(mtlsPort)).toBe(fingerprint(next.cert));
  });
});
