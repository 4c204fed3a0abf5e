import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { StoreTimes } from '../../src/platform/config-sources/read-configuration.js';
import { startConfigStore, type ConfigStore } from '../support/config-store.js';
import type { Fault } from '../support/fault-proxy.js';
import { sendSecurely } from '../support/https-client.js';
import { requires } from '../support/programs.js';
import { startSecureApp, type SecureApp } from '../support/secure-app.js';
import { makeTlsAuthority, type TlsAuthority } from '../support/tls-authority.js';
import '../support/full-scale-only.js';

const first = makeTlsAuthority('authority of today');
const next = makeTlsAuthority('authority of tomorrow');
const fingerprintOf = ({ cert }: TlsAuthority) => new X509Certificate(cert).fingerprint256;
const tlsOf = ({ cert, key }: TlsAuthority) => ({ tls: { cert, key } });

const DENIED: Fault = { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' };
const BROKEN: Fault = { status: 500, body: 'planted-value' };
const KEPT = 'the service keeps the configuration that runs';
const SOON = { interval: 10 };

requires('moto').describe('a configuration document that changes while the service runs', () => {
  let store: ConfigStore;
  let secure: SecureApp;

  /** Puts a document with the first certificate into the store, and starts the service from it. */
  const started = async (storeTimes: StoreTimes) => {
    await store.put({ ...tlsOf(first), rp_name: 'first' });
    const none = { SVC_TLS_CERT: '', SVC_TLS_KEY: '' };
    return startSecureApp({ ...store.environment, ...none }, { storeTimes });
  };
  beforeAll(async () => {
    store = await startConfigStore();
    secure = await started({ pollSeconds: 0.02, timeLimit: 1000 });
  });
  afterAll(async () => {
    await secure.app.close();
    await store.close();
  });
  beforeEach(async () => {
    await store.put({ ...tlsOf(first), rp_name: 'first' });
    const isFirst = async () => (await certificates()).join() === both(first).join();
    await vi.waitUntil(isFirst, { ...SOON, timeout: 90_000 });
    secure.app.log.length = 0;
  });
  afterEach(() => {
    store.proxy.fault = 'none';
  });

  const ports = () => [secure.baseUrl, secure.mutualTlsUrl].map((url) => Number(new URL(url).port));
  const logged = () =>
    secure.app.log
      .map((line) => JSON.parse(line) as Record<string, string>)
      .filter(({ context }) => context === 'object-store')
      .map(({ level, msg }) => `${level}: ${msg}`);
  const certificates = () => Promise.all(ports().map(certificateOf));
  const both = (authority: TlsAuthority) => [fingerprintOf(authority), fingerprintOf(authority)];

  /**
   * Resolves when the service has sent two more requests to the store, so that one poll began after
   * this call.
   */
  const anotherLook = async () => {
    const seen = store.proxy.requests;
    await expect.poll(() => store.proxy.requests, SOON).toBeGreaterThan(seen + 1);
  };

  it.each<readonly [string, Fault, string]>([
    ['status 500', BROKEN, 'SVC_S3_CONFIG_BUCKET: the object store answered with status 500'],
    [
      'a refusal of access',
      DENIED,
      'SVC_S3_CONFIG_BUCKET: access is denied, or the object does not exist (status 403)',
    ],
    ['no answer', 'hang', 'SVC_S3_CONFIG_BUCKET: the object store took too long to answer'],
  ])(
    'keeps what runs through %s, and logs it once, and once that it is over',
    async (_what, fault, line) => {
      store.proxy.fault = fault;
      await store.put({ ...tlsOf(next), rp_name: 'first' });
      await expect.poll(logged, SOON).toEqual([`error: ${line}; ${KEPT}`]);
      await anotherLook();
      expect(await certificates()).toEqual(both(first));
      const health = await sendSecurely(`${secure.baseUrl}/health`, {
        method: 'GET',
        ca: first.ca,
      });
      expect(health.status).toBe(200);
      expect(logged()).toHaveLength(1);
      store.proxy.fault = 'none';
      await expect.poll(logged, SOON).toHaveLength(2);
      expect(logged()[1]).toBe('info: the configuration document is read again, and is valid');
      expect(await certificates()).toEqual(both(next));
    },
  );

  it.each<readonly [string, object | string, string]>([
    ['bad JSON', '{"version": 1, "tls"', 'SVC_S3_CONFIG_KEY: the document is not JSON'],
    [
      'another version',
      { ...tlsOf(next), version: 2 },
      'SVC_S3_CONFIG_KEY: the document must have "version": 1',
    ],
    [
      'a forbidden key',
      { ...tlsOf(next), data_dir: '/tmp' },
      'SVC_S3_CONFIG_KEY: the document may not set data_dir; set its variable',
    ],
    [
      'a certificate without its key',
      { tls: { cert: next.cert } },
      'object store: tls.key: is required',
    ],
    [
      'the key of another certificate',
      { tls: { cert: next.cert, key: first.key } },
      'object store: tls.key: is not the key of the first certificate in tls.cert',
    ],
    [
      'another wrong setting beside a good certificate',
      { ...tlsOf(next), session_hours: 99 },
      'object store: session_hours: must be between 1 and 12',
    ],
  ])('keeps what runs with %s, and logs it once', async (_what, document, line) => {
    await store.put(document);
    await expect.poll(logged, SOON).toEqual([`error: ${line}; ${KEPT}`]);
    await anotherLook();
    expect(logged()).toHaveLength(1);
    expect(await certificates()).toEqual(both(first));
    await store.put({ ...tlsOf(next), rp_name: 'first' });
    await expect.poll(certificates, SOON).toEqual(both(next));
    await expect
      .poll(() => logged().slice(1), SOON)
      .toEqual(['info: the configuration document is read again, and is valid']);
  });

  it('says once of any other change that it needs a restart, by the names of its keys alone', async () => {
    const changed = { ...tlsOf(first), rp_name: 'second', session_hours: 3, unheard_of: 1 };
    await store.put(changed);
    const told = [
      'warn: object store: unheard_of: is not a key of the document',
      'warn: the configuration document changed; needs a restart: rp_name, session_hours',
    ];
    await expect.poll(logged, SOON).toEqual(told);
    // the document differs, but its settings are the same
    await store.put({ ...changed, session_hours: '3' });
    await anotherLook();
    expect(logged()).toEqual(told);
    expect(secure.app.config.session.hours).toBe(8);
    await store.put({ ...tlsOf(next), rp_name: 'first' });
    await expect.poll(certificates, SOON).toEqual(both(next));
    expect(logged().slice(2)).toEqual([
      'info: the configuration document is again the one that runs',
    ]);
  });

  it('ends a look that has no answer when the service stops', async () => {
    await secure.app.close();
    secure = await started({ pollSeconds: 0.02 });
    store.proxy.fault = 'hang';
    const seen = store.proxy.requests;
    await expect.poll(() => store.proxy.requests, SOON).toBeGreaterThan(seen);
    await secure.app.close();
    const after = store.proxy.requests;
    store.proxy.fault = 'none';
    expect(store.proxy.requests).toBe(after);
    secure = await started({ pollSeconds: 1 });
  });

  it('gives its certificate to new connections within one poll, and no handshake under load fails', async () => {
    expect(await certificates()).toEqual(both(first));
    const session = await sessionOf(ports()[0] ?? 0);
    const load = startHandshakes(ports());
    await load.made(40);
    await store.put({ ...tlsOf(next), rp_name: 'first' });
    const requests = store.proxy.requests;
    await expect.poll(certificates, SOON).toEqual(both(next));
    // A poll sends a HEAD and a GET. One more HEAD may belong to a poll that began before the new
    // document was stored.
    expect(store.proxy.requests - requests).toBeLessThanOrEqual(3);
    await load.made(load.count() + 40);
    const { failures, seen, afterNext } = await load.stop();
    expect(failures).toEqual([]);
    expect(seen).toEqual(new Set([fingerprintOf(first), fingerprintOf(next)]));
    expect(afterNext).toEqual(new Map(ports().map((port) => [port, 0])));
    expect(logged()).toEqual([]);
    // A client that tries to resume an earlier TLS session gets a full handshake, with the next
    // certificate.
    const resuming = await handshake(ports()[0] ?? 0, session);
    expect(resuming.isSessionReused()).toBe(false);
    expect(resuming.getPeerCertificate().fingerprint256).toBe(fingerprintOf(next));
    resuming.destroy();
  });
});

async function handshake(port: number, session?: Buffer): Promise<TLSSocket> {
  const options = { port, host: 'localhost', ca: [first.ca, next.ca] };
  const socket = connect(session === undefined ? options : { ...options, session });
  await once(socket, 'secureConnect');
  return socket;
}

/** Returns a TLS session that a second connection has resumed. */
async function sessionOf(port: number): Promise<Buffer> {
  const socket = connect({ port, host: 'localhost', ca: [first.ca, next.ca] });
  const [session] = (await once(socket, 'session')) as [Buffer];
  socket.destroy();
  const resumed = await handshake(port, session);
  expect(resumed.isSessionReused()).toBe(true);
  resumed.destroy();
  return session;
}

/** Returns the SHA-256 fingerprint of the certificate that a port presents on a new connection. */
async function certificateOf(port: number): Promise<string> {
  const socket = await handshake(port);
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

/**
 * Makes TLS handshakes with each port without a pause and verifies the certificates, until `stop`
 * is called.
 */
function startHandshakes(ports: readonly number[]) {
  let count = 0;
  const stopping = new AbortController();
  const failures: string[] = [];
  const seen = new Set<string>();
  /**
   * For each port: the number of handshakes with the first certificate that came after one with the
   * next.
   */
  const afterNext = new Map(ports.map((port) => [port, 0]));
  const client = async (port: number) => {
    let last = '';
    while (!stopping.signal.aborted) {
      try {
        const fingerprint = await certificateOf(port);
        seen.add(fingerprint);
        if (last === fingerprintOf(next) && fingerprint !== last) {
          afterNext.set(port, (afterNext.get(port) ?? 0) + 1);
        }
        last = fingerprint;
      } catch (error) {
        failures.push(String(error));
      }
      count += 1;
    }
  };
  const clients = ports.flatMap((port) => [client(port), client(port)]);
  return {
    count: () => count,
    async made(number: number) {
      await expect.poll(() => count, SOON).toBeGreaterThan(number);
    },
    async stop() {
      stopping.abort();
      await Promise.all(clients);
      return { failures, seen, afterNext };
    },
  };
}
