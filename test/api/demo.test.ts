import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { startBrowser, openProfile } from '../support/browser.js';
import { addChromiumKey } from '../support/chromium-key.js';
import { Client, newAddress } from '../support/client.js';
import { createTestDatabase } from '../support/database.js';
import { run, start, type EntryPoint } from '../support/entry-point.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const STEPS = [
  'sign in upstream',
  'enroll the software key',
  'log in with the key',
  'list the keys',
  'get an SSH certificate',
  'check it against the CA key',
  'get AWS credentials',
  'sign in to an application',
  'approve the command line',
  'provision a colleague by SCIM',
  'delete the colleague by SCIM',
];
/** Signed by a root, and not a root itself. */
const LEAF = issueAttestationLeaf(
  Buffer.alloc(16, 1),
  new Date(),
  issueAuthority('Root', new Date()),
).pem;
const URL_TO_OPEN = /^ +(http:\/\/localhost:\d+)$/m;

let cwd: string;

/** Returns the lines of a demo on standard error, of which 10.30 allows none. */
function complaintsOf(stderr: string): string[] {
  return stderr.split('\n').filter((line) => line !== '');
}

/**
 * All demos of this file run in one directory, one after the other: each finds the data of the one
 * before.
 */
beforeAll(async () => {
  cwd = await makeTemporaryDirectory();
});
afterAll(() => removeDirectory(cwd));

/** Starts the demo in the current directory, and waits until it prints its URL. */
async function serve(...args: string[]): Promise<{ demo: EntryPoint; baseUrl: string }> {
  const demo = start('demo/main.js', ['--port', String(await freePort()), ...args], { cwd });
  const [, baseUrl = ''] = await demo.printed(URL_TO_OPEN);
  return { demo, baseUrl };
}

/**
 * Returns the environment of a production start on a free port, with the given identity provider.
 */
async function production(issuer: string) {
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const environment = {
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_JWT_SECRET: 'a root secret that only this test knows',
    SVC_IDPS: 'corp',
    SVC_IDP_CORP_TYPE: 'oidc',
    SVC_IDP_CORP_ISSUER: issuer,
    SVC_IDP_CORP_CLIENT_ID: 'svc',
    SVC_IDP_CORP_CLIENT_SECRET: 'secret',
    SVC_LOG_FORMAT: 'json',
  };
  return { baseUrl, environment };
}

/** Masks the parts of a transcript that differ between runs. */
function withoutChance(transcript: string): string[] {
  return transcript
    .replaceAll(/demo-[0-9a-f]{8}/g, 'demo-*')
    .replaceAll(/SHA256:[\w+/]+/g, 'SHA256:*')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '*')
    .replaceAll(/\b[A-Z]{4}-[A-Z]{4}\b/g, '*')
    .replaceAll(/\b\d{10,}\b|\d+\.\d{1,3} s|\b28\d{3}\b/g, '*')
    .replace(/, which sshd takes/, '')
    .replace(/, (?:refused by sshd after \*|no sshd here to ask)/, '')
    .split('\n')
    .filter((line) => line !== '');
}

describe('the scenario of the demo', () => {
  /** The transcript of a run with text output. */
  let printed = '';

  /** The document of the first run in this directory. */
  let document: {
    ok: boolean;
    base_url: string;
    steps: { name: string; ok: boolean; result: Record<string, unknown>; ms: number }[];
    ssh: Record<string, unknown> & { certificate: string; valid_before: string };
  };

  it('prints one JSON document of successful steps and nothing else, and exits with 0', async () => {
    // the demo reads no .env
    await writeFile(join(cwd, '.env'), 'SVC_JWT_SECRET=short\nSVC_IDPS=corp\n');
    const { status, stdout, stderr } = await run(
      'demo/main.js',
      ['--json', '--exit', '--port', '0'],
      { cwd },
    );
    expect(complaintsOf(stderr)).toEqual([]);
    document = JSON.parse(stdout);
    expect(document).toMatchObject({ ok: true, steps: STEPS.map((name) => ({ name, ok: true })) });
    expect(document.base_url).toMatch(/^http:\/\/localhost:\d+$/);
    expect(document.ssh.certificate).toMatch(/^ssh-ed25519-cert-v01@openssh\.com [\w+/]+=*$/);
    expect(status).toBe(0);
  });

  requires('ssh-keygen').describe('with OpenSSH', () => {
    it('gets a certificate in which ssh-keygen reads principals, validity and extensions', async () => {
      const file = join(cwd, 'id-cert.pub');
      await writeFile(file, document.ssh.certificate);
      const text = execFileSync('ssh-keygen', ['-L', '-f', file], {
        encoding: 'utf8',
        env: { ...process.env, TZ: 'UTC' },
      });
      const email = String(document.steps[0]?.result['email']);
      const expires = String(document.steps[2]?.result['session_expires_at']);
      expect(text).toContain('Type: ssh-ed25519-cert-v01@openssh.com user certificate');
      expect(text).toContain(`Key ID: "${email}@localhost"`);
      expect(text).toMatch(
        new RegExp(`Principals: \\n +${email}\\n +Critical Options: \\(none\\)`),
      );
      expect(text.match(/permit-\S+/g)).toHaveLength(5);
      expect(text).toContain(`to ${document.ssh.valid_before.slice(0, 19)}`);
      expect(Date.parse(document.ssh.valid_before)).toBeLessThan(Date.parse(expires) + 1000);
    });
  });

  it('succeeds again on the same data, with output for a reader', async () => {
    const { status, stdout, stderr } = await run('demo/main.js', ['--exit', '--port', '0'], {
      cwd,
    });
    expect(complaintsOf(stderr)).toEqual([]);
    const told = stdout.split('\n').filter((line) => line.startsWith('ok  '));
    expect(told.map((line) => / (?<n>\d+)\. (?<name>.*) — ./.exec(line)?.groups)).toEqual(
      STEPS.map((name, index) => ({ n: String(index + 1), name })),
    );
    printed = stdout;
    expect(stdout).toContain('11 of 11 steps succeeded.');
    expect(stdout).not.toMatch(URL_TO_OPEN);
    expect(status).toBe(0);
  });

  it('10.30 prints what the README shows', async () => {
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const [, shown = ''] = /```\n(The svc demo:[^]*?)```/.exec(readme) ?? [];
    expect(withoutChance(printed)).toEqual(withoutChance(shown.split('\nNow ')[0] ?? ''));
  });

  it('never prints its secrets', async () => {
    for (const name of ['demo.json', 'ssh_ca_key']) {
      const { mode } = await stat(join(cwd, 'data-demo', name));
      expect(mode & 0o777, name).toBe(0o600);
    }
  });

  it('fails at the sign-in with other identity providers, prints the reason, and exits with 1', async () => {
    const idp = await startDemoIdentityProvider({
      clientId: 'svc',
      clientSecret: 'secret',
      redirectUri: 'http://localhost/oauth/callback',
    });
    try {
      const {
        SVC_BASE_URL: _,
        SVC_LISTEN_ADDR: __,
        SVC_JWT_SECRET: ___, // the stored secret remains, because it seals keys in the data
        ...environment
      } = (await production(idp.issuer)).environment;
      const ended = await run('demo/main.js', ['--json', '--exit', '--port', '0'], {
        cwd,
        environment,
      });
      const { ok, steps, ssh } = JSON.parse(ended.stdout);
      expect({ ok, ssh }).toEqual({ ok: false, ssh: null });
      expect(steps[0].error).toMatch(/^SVC_IDPS names other identity providers/);
      expect(steps.map((step: { ok: boolean }) => step.ok)).toEqual(STEPS.map(() => false));
      expect(ended.status).toBe(1);
    } finally {
      await idp.close();
    }
  });
});

describe('the command line of the demo', () => {
  it('refuses an unknown option with status 2 and lists the known ones', async () => {
    const { status, stdout, stderr } = await run('demo/main.js', ['--production'], { cwd });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain('--production');
    expect(stderr).toContain('Usage: npm run demo -- [options]');
  });

  it('prints its help', async () => {
    const { status, stdout } = await run('demo/main.js', ['--help'], { cwd });
    expect(status).toBe(0);
    for (const option of ['--json', '--exit', '--port N', '--attestation-root FILE.pem']) {
      expect(stdout).toContain(option);
    }
  });

  it('reports a taken port in one line', async () => {
    const other = createServer();
    const port = await listenOnLoopback(other);
    try {
      const ended = await run('demo/main.js', ['--exit', '--json', '--port', String(port)], {
        cwd,
      });
      expect(ended.stderr).toBe(
        `Port ${port} cannot be listened on (EADDRINUSE): choose another with --port\n`,
      );
      expect(ended.status).toBe(1);
    } finally {
      await stopServer(other);
    }
  });

  it('refuses a public base URL in one line, before it starts anything', async () => {
    const environment = { SVC_BASE_URL: 'https://svc.example.com' };
    const ended = await run('demo/main.js', ['--exit', '--port', '0'], { cwd, environment });
    expect(ended.stderr).toMatch(/^SVC_BASE_URL: must be a loopback address[^\n]*\n$/);
    expect(ended.status).toBe(1);
  });

  it('listens only on loopback, with any environment', async () => {
    const environment = { SVC_LISTEN_ADDR: '0.0.0.0:3000' };
    const ended = await run('demo/main.js', ['--exit', '--port', '0'], { cwd, environment });
    expect(ended.stderr).toMatch(/^SVC_LISTEN_ADDR: must be a loopback address/);
    expect(ended.status).toBe(1);
  });

  it.each([
    ['that is not there', undefined],
    ['that is not PEM', 'not a certificate'],
    ['that is no certificate authority', LEAF],
  ])('refuses an attestation root %s', async (_, content) => {
    const file = join(cwd, 'root.pem');
    if (content !== undefined) await writeFile(file, content);
    const args = ['--exit', '--port', '0', '--attestation-root', file];
    const ended = await run('demo/main.js', args, { cwd });
    expect(ended.stderr).toMatch(/^--attestation-root: \S+root\.pem holds no root certificate \(/);
    expect(ended.stderr.trim().split('\n')).toHaveLength(1);
    expect(ended.status).toBe(1);
  });
});

describe('the demo as a server', () => {
  const outside = new SoftwareKey();
  let demo: EntryPoint;
  let baseUrl: string;

  beforeAll(async () => {
    await writeFile(join(cwd, 'root.pem'), outside.rootPem);
    ({ demo, baseUrl } = await serve('--attestation-root', 'root.pem'));
  });
  afterAll(() => demo.stop());

  it('listens on both loopback addresses and on no other', async () => {
    const { port } = new URL(baseUrl);
    const isOpen = (host: string) =>
      new Promise<boolean>((resolve) => {
        const socket = connect(Number(port), host, () => socket.destroy() && resolve(true));
        socket.on('error', () => resolve(false));
      });
    expect(await isOpen('127.0.0.1')).toBe(true);
    expect(await isOpen('::1')).toBe(true);
    // listening on every address would include this one
    expect(await isOpen('127.0.0.2')).toBe(false);
  });

  it('10.30 loads each of its pages and all their files in 9 quick tries', async () => {
    for (const path of ['/', '/login', '/account/keys', '/enroll', '/device']) {
      const headers = { 'x-forwarded-for': newAddress() };
      for (let tries = 0; tries < 9; tries += 1) {
        const answer = await new Client(baseUrl).get(path, { headers });
        expect([path, answer.status]).not.toEqual([path, 429]);
        const needed = [...answer.text.matchAll(/(?:src|href)="(\/[^"]*\.(?:js|css|svg))"/g)];
        for (const [, file = ''] of needed) {
          const got = await new Client(baseUrl).get(file, { headers });
          expect([file, got.status]).toEqual([file, 200]);
        }
      }
    }
  });

  it('10.30 styles the pages of its provider, under a policy that allows no other style', async () => {
    const login = await new Client(baseUrl).get('/login?provider=demo');
    const page = await fetch(login.headers.get('location') ?? '');
    const text = await page.text();
    const [, style = ''] = /<style>([^]*)<\/style>/.exec(text) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(style).toContain('font');
    expect(page.headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`);
  });

  it('accepts an outside software key with a configured root, and no other', async () => {
    const owner = new Client(baseUrl);
    await owner.signIn('outside@example.com');
    expect(await owner.enroll(outside)).toMatchObject({ status: 200 });
    const stranger = new Client(baseUrl);
    await stranger.signIn('stranger@example.com');
    expect(await stranger.enroll(new SoftwareKey())).toMatchObject({
      status: 400,
      json: { code: 'attestation_rejected' },
    });
  });

  it('offers its key only to its own pages', async () => {
    const { publicKey } = (await new Client(baseUrl).post('/login/webauthn/start', {})).json;
    for (const origin of ['', 'https://evil.example', 'http://127.0.0.1']) {
      const answer = await new Client(baseUrl).post('/demo/software-key/get', publicKey, {
        headers: { origin },
      });
      expect(answer).toMatchObject({ status: 403, json: { code: 'invalid_origin' } });
    }
  });

  it('explains what to do when its key has none of the requested credentials', async () => {
    const { publicKey } = (await new Client(baseUrl).post('/login/webauthn/start', {})).json;
    const allowCredentials = [{ type: 'public-key', id: 'bm9uZQ' }];
    const answer = await new Client(baseUrl).post('/demo/software-key/get', {
      ...publicKey,
      allowCredentials,
    });
    expect(answer.status).toBe(400);
    expect(answer.json.detail).toMatch(/has no such credential\. Sign in as another user, or/);
  });

  requires('chromium').describe('in Chromium', () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await startBrowser();
    });
    afterAll(() => browser.close());

    it('completes the same scenario at the printed URL with the demo’s software key', async () => {
      const visitor = await openProfile(browser, baseUrl);
      const { page, pageErrors: complaints } = visitor;
      const button = (name: string) => page.getByRole('button', { name });
      const heading = (name: string) => page.getByRole('heading', { name });
      await page.goto('/');
      await page.getByRole('link', { name: 'Sign in' }).click();
      expect(await page.getByLabel('Use the demo’s software key').isChecked()).toBe(true);
      await page.getByRole('link', { name: 'Continue with the demo identity provider' }).click();
      await page.getByLabel('E-mail').fill('grace.hopper@example.com');
      await button('Sign in').click();
      await button('Enroll this key').click();
      await heading('Your key is enrolled').waitFor();
      await button('Log out').click();
      await page.getByRole('link', { name: 'Sign in' }).click();
      await button('Use your security key').click();
      await heading('Hello, Grace Hopper').waitFor();
      expect(complaints).toEqual([]);
      await visitor.leave();
    });

    it('does not replace the browser’s own key once the choice is off, and remembers the choice', async () => {
      const visitor = await openProfile(browser, baseUrl);
      const { page, pageErrors: complaints } = visitor;
      await addChromiumKey(page);
      await page.goto('/');
      await page.getByLabel('Use the demo’s software key').uncheck();
      await page.goto('/login?provider=demo&login_hint=real@example.com');
      expect(await page.getByLabel('Use the demo’s software key').isChecked()).toBe(false);
      const answer = page.waitForResponse('**/enroll/webauthn/complete');
      await page.getByRole('button', { name: 'Enroll this key' }).click();
      expect(await (await answer).json()).toMatchObject({ code: 'attestation_rejected' });
      expect(complaints.filter((complaint) => !complaint.includes('status of 400'))).toEqual([]);
      await visitor.leave();
    });
  });

  it('stops its PostgreSQL, exits with 0, and keeps its users and its key for the next start', async () => {
    const ada = new Client(baseUrl);
    await ada.signIn('ada@example.com');
    expect(await enrollInBrowser(ada)).toMatchObject({ status: 200 });
    const pidFile = join(cwd, 'data-demo/postgres/postmaster.pid');
    expect(existsSync(pidFile)).toBe(true);
    const ended = await demo.stop();
    expect([ended.status, complaintsOf(ended.stderr)]).toEqual([0, []]);
    expect(existsSync(pidFile)).toBe(false);

    const second = await serve();
    try {
      const keyAlone = new Client(second.baseUrl);
      expect(await logInInBrowser(keyAlone)).toMatchObject({ status: 200 });
      expect((await keyAlone.get('/')).text).toContain('ada@example.com');
      const upstream = new Client(second.baseUrl);
      const page = await upstream.signIn('ada@example.com');
      expect(page.url.pathname).toBe('/login'); // the user has a key, so the service asks for it
    } finally {
      await second.demo.stop();
    }
  });

  /** Calls the demo's key like the script of its pages. */
  async function enrollInBrowser(client: Client) {
    const { state, publicKey } = (await client.post('/enroll/webauthn/start', {})).json;
    const { json: credential } = await client.post('/demo/software-key/create', publicKey);
    return client.post('/enroll/webauthn/complete', { state, credential });
  }

  async function logInInBrowser(client: Client) {
    const { state, publicKey } = (await client.post('/login/webauthn/start', {})).json;
    const { json: credential } = await client.post('/demo/software-key/get', publicKey);
    return client.post('/login/webauthn/complete', { state, credential });
  }
});

describe('the demo and production', () => {
  let idp: Awaited<ReturnType<typeof startDemoIdentityProvider>>;

  beforeAll(async () => {
    idp = await startDemoIdentityProvider({
      clientId: 'svc',
      clientSecret: 'secret',
      redirectUri: 'http://localhost/oauth/callback',
    });
  });
  afterAll(() => idp.close());

  it('dist/main.js refuses the database of the demo', async () => {
    const { environment } = await production(idp.issuer);
    const ended = await run('main.js', [], {
      cwd,
      environment: { ...environment, SVC_DATA_DIR: './data-demo' },
    });
    expect(ended.stderr).toMatch(
      /^This database was made by the demo composition, and the production composition refuses .*\n$/,
    );
    expect(ended.status).toBe(1);
  });

  it('the demo refuses a production database, and production offers no software key', async () => {
    const database = await createTestDatabase();
    try {
      const { baseUrl, environment } = await production(idp.issuer);
      const service = start('main.js', [], {
        cwd,
        environment: { ...environment, SVC_DATABASE_URL: database.url },
      });
      await service.answers(`${baseUrl}/health/ready`);
      expect((await fetch(`${baseUrl}/static/demo/software-key.js`)).status).toBe(404);
      expect(await (await fetch(`${baseUrl}/login`)).text()).not.toContain('software-key');
      expect(await service.stop()).toMatchObject({ status: 0 });

      const ended = await run('demo/main.js', ['--json', '--exit', '--port', '0'], {
        cwd,
        environment: { SVC_DATABASE_URL: database.url, SVC_DATA_DIR: join(cwd, 'elsewhere') },
      });
      expect(ended.stderr).toMatch(
        /^This database was made by the production composition, and the demo composition refuses .*\n$/,
      );
      expect({ status: ended.status, stdout: ended.stdout }).toEqual({ status: 1, stdout: '' });
      expect(existsSync(join(cwd, 'elsewhere/demo.json'))).toBe(false);
    } finally {
      await database.drop();
    }
  });
});
