import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { startBrowser, openProfile } from '../support/browser.js';
import { addChromiumKey } from '../support/chromium-key.js';
import { Client, newAddress } from '../support/client.js';
import { prepareDataDir } from '../support/cluster-template.js';
import { createTestDatabase } from '../support/database.js';
import { complaintsOf, productionOf, URL_TO_OPEN } from '../support/demo-process.js';
import { run, start, type EntryPoint } from '../support/entry-point.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

let cwd: string;

/**
 * All demos of this file run one after the other in one directory, so that each finds the data of
 * the previous one.
 */
beforeAll(async () => {
  cwd = await makeTemporaryDirectory();
});
afterAll(() => removeDirectory(cwd));

/** Starts the demo in the current directory, and waits until it prints its URL. */
async function serve(...args: string[]): Promise<{ demo: EntryPoint; baseUrl: string }> {
  await prepareDataDir(join(cwd, 'data-demo'));
  const demo = start('demo/main.js', ['--port', String(await freePort()), ...args], { cwd });
  const [, baseUrl = ''] = await demo.printed(URL_TO_OPEN);
  return { demo, baseUrl };
}

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
    // a server that listened on all addresses would answer here
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
      // the user of the earlier demo has a key, so that the login page follows
      expect(page.url.pathname, page.text).toBe('/login');
    } finally {
      await second.demo.stop();
    }
  });

  /** Enrolls the software key of the demo by the requests that the script of its pages sends. */
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
    const { environment } = await productionOf(idp.issuer);
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
      const { baseUrl, environment } = await productionOf(idp.issuer);
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
