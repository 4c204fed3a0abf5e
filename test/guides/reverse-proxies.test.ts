import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { freePort } from '../support/free-port.js';
import { guideBlock, runToSuccess } from '../support/guide.js';
import { sendSecurely, type SecureAnswer } from '../support/https-client.js';
import { findProgram, requires } from '../support/programs.js';
import { insertVerifiedSession } from '../support/secure-app.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { makeTlsAuthority, type TlsAuthority } from '../support/tls-authority.js';

const HOST = 'login.example.com';
/** An IP address that requests claim falsely. No client of this test connects from it. */
const FORGED = '203.0.113.7';

/** The ports and the folder that replace those of the guide. */
interface Places {
  readonly folder: string;
  readonly service: number;
  readonly https: number;
  readonly http: number;
}

/**
 * Writes the configuration of a proxy, and returns its program with the arguments. The
 * configuration is the guide's with other ports and files, because a test must not use port 443.
 */
type Proxy = (places: Places) => readonly [string, ...string[]];

const nginx: Proxy = ({ folder, service, https, http }) => {
  const block = guideBlock('reverse-proxies.md', 'nginx', {
    '127.0.0.1:3000': `127.0.0.1:${service}`,
    'listen 80': `listen 127.0.0.1:${http}`,
    'listen 443': `listen 127.0.0.1:${https}`,
    '/etc/nginx/tls/': `${folder}/`,
  });
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join('\n');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const file = join(folder, 'nginx.conf');
  writeFileSync(
    file,
    `${user}\ndaemon off;\npid ${folder}/nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${block}}\n`,
  );
  return [findProgram('nginx') ?? '', '-p', folder, '-c', file, '-e', 'stderr'];
};

const caddy: Proxy = ({ folder, service, https, http }) => {
  const block = guideBlock('reverse-proxies.md', 'caddy', {
    '127.0.0.1:3000': `127.0.0.1:${service}`,
    '/etc/caddy/': `${folder}/`,
  });
  const file = join(folder, 'Caddyfile');
  const global = `admin off\nhttp_port ${http}\nhttps_port ${https}\ndefault_bind 127.0.0.1\nservers {\nprotocols h1 h2\n}\nstorage file_system ${folder}/storage`;
  writeFileSync(file, `{\n${global}\n}\n${block}`);
  return [findProgram('caddy') ?? '', 'run', '--adapter', 'caddyfile', '--config', file];
};

/** Waits until a port of loopback accepts connections. Throws if the process ends before. */
async function listening(child: ChildProcess, port: number, output: () => string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the proxy ended: ${output()}`);
    const socket = connect(port, '127.0.0.1');
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await delay(20);
  }
}

/** A service behind a running proxy. */
interface Behind {
  readonly app: TestApp;
  readonly authority: TlsAuthority;
  readonly folder: string;
  readonly https: number;
  readonly http: number;
  /** Sends a request to the proxy from the loopback address `from`. */
  send(
    path: string,
    from: string,
    options?: Omit<Parameters<typeof sendSecurely>[1], 'localAddress'>,
  ): Promise<SecureAnswer>;
  /** Returns the client IP addresses that the service logged for requests of a path, in order. */
  clientsOf(path: string): string[];
  stop(): Promise<void>;
}

async function startBehind(proxy: Proxy): Promise<Behind> {
  const parts = new AsyncDisposableStack();
  const folder = await makeTemporaryDirectory();
  parts.defer(() => removeDirectory(folder));
  const [service, https, http] = [await freePort(), await freePort(), await freePort()];
  const authority = makeTlsAuthority('Authority of the proxy', [HOST]);
  writeFileSync(join(folder, `${HOST}.pem`), authority.cert);
  writeFileSync(join(folder, `${HOST}.key`), authority.key);
  writeFileSync(join(folder, 'ca.pem'), authority.ca);
  const settings = guideBlock('reverse-proxies.md', 'settings', {
    '127.0.0.1:3000': `127.0.0.1:${service}`,
  });
  const environment = Object.fromEntries(
    settings
      .trim()
      .split('\n')
      .map((line) => line.split('=', 2) as [string, string]),
  );
  const app = await startTestApp({ environment });
  parts.defer(() => app.close());
  mkdirSync(join(folder, 'home'));
  const [program, ...args] = proxy({ folder, service, https, http });
  const child = spawn(program, args, {
    env: { PATH: process.env['PATH'] ?? '', HOME: join(folder, 'home') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close');
  parts.defer(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  await listening(child, https, () => output);
  return {
    app,
    authority,
    folder,
    https,
    http,
    send: (path, from, { headers, ...options } = {}) =>
      sendSecurely(`https://${HOST}${path}`, {
        port: https,
        headers: { host: HOST, ...(headers as Record<string, string> | undefined) },
        ca: authority.ca,
        localAddress: from,
        family: 4,
        lookup: (_host, { all }, done) => {
          if (all === true) done(null, [{ address: '127.0.0.1', family: 4 }]);
          else done(null, '127.0.0.1', 4);
        },
        ...options,
      }),
    clientsOf: (path) =>
      app.log
        .map((line) => JSON.parse(line) as { context?: string; msg?: string; client?: string })
        .filter(({ context, msg }) => context === 'http' && msg?.includes(` ${path} `) === true)
        .map(({ client = '' }) => client),
    stop: () => parts.disposeAsync(),
  };
}

for (const [name, proxy] of Object.entries({ nginx, caddy })) {
  requires(name, 'curl').describe(
    `the ${name} configuration of the guide, in front of a server`,
    () => {
      let behind: Behind;
      beforeAll(async () => {
        behind = await startBehind(proxy);
      });
      afterAll(() => behind.stop());

      it('the service sees the address of the client, and none that the client made up', async () => {
        const path = '/v1/keys';
        await behind.send(path, '127.0.0.21', { headers: { 'x-forwarded-for': FORGED } });
        await behind.send(path, '127.0.0.22', {
          headers: { 'x-forwarded-for': `${FORGED}, 127.0.0.1`, forwarded: `for=${FORGED}` },
        });
        await behind.send(path, '127.0.0.23', { headers: { 'x-real-ip': FORGED } });
        await expect
          .poll(() => behind.clientsOf(path))
          .toEqual(['127.0.0.21', '127.0.0.22', '127.0.0.23']);
      });

      it('each client has a rate limit of its own', async () => {
        const ask = (from: string) =>
          behind.send('/oauth/token', from, { method: 'POST', form: {} });
        const answers = await Promise.all(Array.from({ length: 10 }, () => ask('127.0.0.31')));
        expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(0);
        expect((await ask('127.0.0.32')).status).toBe(401);
      });

      it('metadata and cookies are those of the https base URL', async () => {
        const { json } = await behind.send('/.well-known/openid-configuration', '127.0.0.41');
        expect(json.issuer).toBe(`https://${HOST}`);
        expect(json.authorization_endpoint).toBe(`${json.issuer}/oauth/authorize`);
        const { status, headers } = await behind.send('/login?provider=demo', '127.0.0.41');
        expect(status).toBe(303);
        const cookies = [headers['set-cookie'] ?? []].flat();
        expect(cookies.length).toBeGreaterThan(0);
        expect(cookies.filter((cookie) => !/; Secure\b/i.test(cookie))).toEqual([]);
      });

      it('a session and a write from the own origin pass, and a write from another origin does not', async () => {
        const cookie = await insertVerifiedSession(behind.app, `ada@${name}.example`);
        const { json } = await behind.send('/v1/keys', '127.0.0.51', { headers: { cookie } });
        const rename = (origin: string) =>
          behind.send(`/v1/keys/${json.keys[0].id}`, '127.0.0.51', {
            method: 'PATCH',
            text: JSON.stringify({ name: 'Desk' }),
            headers: { cookie, origin },
          });
        expect((await rename('https://evil.example')).status).toBe(403);
        expect((await rename(`https://${HOST}`)).status).toBe(200);
      });

      it('another host is refused by the service or before it', async () => {
        const { status, text } = await behind.send('/login', '127.0.0.61', {
          servername: HOST,
          headers: { host: 'evil.example' },
        });
        expect(status === 421 || text === '').toBe(true);
      });

      it('plain HTTP is redirected with 308, and the check of the guide prints what it promises', async () => {
        const printed = await runToSuccess(
          atTheProxy(guideBlock('reverse-proxies.md', 'check'), behind),
        );
        expect(printed).toContain('ok');
        expect(printed).toContain(`"issuer":"https://${HOST}"`);
        expect(printed).toMatch(
          new RegExp(`^308 https://${HOST}(?::${behind.https})?/login$`, 'm'),
        );
      });

      it('browsers are told once to use https alone', async () => {
        const { headers } = await behind.send('/login', '127.0.0.71');
        expect(headers['strict-transport-security']).toBe('max-age=63072000; includeSubDomains');
      });

      it('15 KiB of headers pass, and more than the service reads is refused', async () => {
        const sent = (size: number) =>
          behind.send('/health', '127.0.0.81', { headers: { 'x-long': 'x'.repeat(size) } });
        expect((await sent(15 * 1024)).status).toBe(200);
        expect([400, 431]).toContain((await sent(17 * 1024)).status);
      });

      it('a body of 1 MiB reaches the service, which decides; a larger one does not', async () => {
        const deliver = (size: number) =>
          behind.send('/api/webhooks/github', '127.0.0.91', {
            method: 'POST',
            text: 'x'.repeat(size),
          });
        const inside = await deliver(1_000_000);
        expect(inside.status).not.toBe(413);
        expect(inside.headers['x-ratelimit-limit']).toBeDefined();
        expect((await deliver(1_100_000)).status).toBe(413);
      });

      it('paths reach the service as the client wrote them', async () => {
        const { status, headers } = await behind.send('/v1/keys/%2e%2e%2fhealth', '127.0.0.92');
        expect(status).not.toBe(200);
        expect(headers['x-fapi-interaction-id']).toBeDefined();
      });

      it('the request of the guide with a forged address is logged with the real one', async () => {
        const before = behind.clientsOf('/v1/keys').length;
        await runToSuccess(atTheProxy(guideBlock('reverse-proxies.md', 'forged'), behind));
        await expect.poll(() => behind.clientsOf('/v1/keys').slice(before)).toEqual(['127.0.0.1']);
      });
    },
  );
}

/**
 * Defines a `curl` for commands of the guide that connects to the proxy and trusts its certificate.
 */
function atTheProxy(commands: string, { https, http, folder }: Behind): string {
  const ports = `--connect-to ${HOST}:443:127.0.0.1:${https} --connect-to ${HOST}:80:127.0.0.1:${http}`;
  return `curl() { command curl --cacert ${folder}/ca.pem ${ports} "$@"; }\n${commands}`;
}

it('of the addresses that a load balancer appends, the service reads the last', async () => {
  const app = await startTestApp();
  try {
    await app.client().get('/v1/keys', { address: `${FORGED}, 198.51.100.4` });
    await expect
      .poll(() => app.log.filter((line) => line.includes('"client":"198.51.100.4"')))
      .not.toEqual([]);
    expect(app.log.filter((line) => line.includes(`"client":"${FORGED}"`))).toEqual([]);
  } finally {
    await app.close();
  }
});
