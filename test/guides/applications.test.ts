import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  accessSync,
  constants,
  copyFileSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { filesLike } from '../architecture/language.js';
import type { TestApp } from '../support/app.js';
import { addApplication } from '../support/applications.js';
import { newAddress, type Answer, type Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { guideBlock } from '../support/guide.js';
import { postForm } from '../support/oauth-flow.js';
import { orgApi, idOf, addMember } from '../support/org-api.js';
import { AUTHLIB_PYTHON, requires } from '../support/programs.js';
import { PUBLIC_URL, PublicName } from '../support/public-name.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const ROOT = resolve(import.meta.dirname, '../..');
const ADA = 'ada@applications-guide.example';
const BOB = 'bob@applications-guide.example';

let name: PublicName;
let app: TestApp;
let ada: Client;
beforeAll(async () => {
  name = await PublicName.open();
  app = await name.startApp();
  ({ client: ada } = await app.enrolled(ADA));
});
afterAll(async () => {
  await app.close();
  await name.close();
});

/** A running example application of the guide. */
interface Running {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Registers an application as the guide says, and runs its program with the client's values in its
 * environment.
 */
async function startApplication(
  prepare: (
    folder: string,
    port: number,
  ) => Promise<readonly [string, ...string[]]> | readonly [string, ...string[]],
): Promise<Running> {
  const folder = await makeTemporaryDirectory();
  const port = await freePort();
  const url = `http://localhost:${port}`;
  // The guide's URL is replaced, because the application runs on this machine.
  const registration = guideBlock('applications/README.md', 'registration', {
    'https://orders.example.com': url,
  });
  const registered = await ada.post('/api/v1/applications', registration, {
    address: newAddress(),
  });
  expect(registered.status, registered.text).toBe(201);
  const [program, ...args] = await prepare(folder, port);
  const child = spawn(program, args, {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      ...name.env,
      ISSUER: PUBLIC_URL,
      CLIENT_ID: registered.json.client_id as string,
      CLIENT_SECRET: registered.json.client_secret as string,
      BASE_URL: url,
      PORT: String(port),
      SESSION_SECRET: 'only of this test',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'close');
  while (!(await fetch(`${url}/login`, { redirect: 'manual' }).catch(() => undefined))) {
    if (child.exitCode !== null) throw new Error(`the application ended: ${output}`);
    await delay(20);
  }
  return {
    url,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      await removeDirectory(folder);
    },
  };
}

/** Returns the id of a user's organization, which the list of applications shows. */
async function organizationOf(browser: Client): Promise<string> {
  const { json } = await browser.get('/api/v1/applications', { address: newAddress() });
  const [one] = json.applications as { org_id: string }[];
  return one?.org_id ?? '';
}

/**
 * Follows the redirects of a sign-in, from the application through the service and back. Returns
 * the last response.
 */
async function signIn(browser: Client, url: string): Promise<Answer> {
  let next = `${url}/login`;
  for (let hops = 0; hops < 12; hops += 1) {
    const answer = await browser.get(next, { address: newAddress() });
    const location = answer.headers.get('location');
    if (location === null) return answer;
    next = new URL(location, next).href;
  }
  throw new Error('too many redirects');
}

/**
 * Returns the cache of the Go compiler that `.ci/run` filled with modules and the standard library.
 * If the test cannot write there, returns an empty cache.
 */
function goCache(folder: string): string {
  const filled = '/opt/svc-test/go/cache';
  try {
    accessSync(filled, constants.W_OK);
    return filled;
  } catch {
    return join(folder, 'cache');
  }
}

const GREETING = `Hello ${ADA}, by hwk and pin and user`;

describe('the Express application of the guide', () => {
  let running: Running;
  beforeAll(async () => {
    running = await startApplication((folder) => {
      symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
      writeFileSync(join(folder, 'app.mjs'), guideBlock('applications/express.md', 'express'));
      return [process.execPath, 'app.mjs'];
    });
  });
  afterAll(() => running.stop());

  it('signs a user in with a security key', async () => {
    expect((await signIn(ada.copy(), running.url)).text).toBe(GREETING);
  });

  it('lets the user in no more once an admin removed the account', async () => {
    await addMember(app, ADA, BOB);
    const { client: bob } = await app.enrolled(BOB);
    expect((await signIn(bob, running.url)).text).toContain(BOB);
    const removal = await orgApi(ada, 'POST', `/members/${await idOf(app, BOB)}/remove`);
    expect(removal.status, removal.text).toBeLessThan(300);
    const { status, headers } = await bob.get(running.url);
    expect([status, headers.get('location')]).toEqual([302, '/login']);
  });

  it('refuses a callback of another browser', async () => {
    const { status, headers } = await fetch(`${running.url}/callback?code=x&state=y`, {
      redirect: 'manual',
    });
    expect([status, headers.get('location')]).toEqual([302, '/login']);
  });
});

requires('authlib').describe('the Python application of the guide', () => {
  it('signs a user in with a security key', async () => {
    const running = await startApplication((folder, port) => {
      writeFileSync(join(folder, 'app.py'), guideBlock('applications/python.md', 'python'));
      return [AUTHLIB_PYTHON, '-m', 'flask', '--app', 'app', 'run', '--port', String(port)];
    });
    try {
      expect((await signIn(ada.copy(), running.url)).text).toBe(GREETING);
    } finally {
      await running.stop();
    }
  });
});

requires('go', 'the Go modules').describe('the Go program of the guide', () => {
  it('compiles, and signs a user in with a security key', async () => {
    const running = await startApplication((folder) => {
      const source = join(folder, 'source');
      mkdirSync(source);
      for (const file of ['go.mod', 'go.sum'])
        copyFileSync(join(ROOT, '.ci/go', file), join(source, file));
      writeFileSync(join(source, 'main.go'), guideBlock('applications/go.md', 'go'));
      const environment = {
        PATH: process.env['PATH'] ?? '',
        HOME: folder,
        GOPATH: '/opt/svc-test/go',
        GOCACHE: goCache(folder),
        GOPROXY: 'off', // uses only modules that were fetched before
        GOTOOLCHAIN: 'local',
        CGO_ENABLED: '0',
      };
      const built = spawnSync('go', ['build', '-o', join(folder, 'app'), '.'], {
        cwd: source,
        env: environment,
      });
      expect(built.status, String(built.stderr)).toBe(0);
      return [join(folder, 'app')];
    });
    try {
      expect((await signIn(ada.copy(), running.url)).text).toBe(GREETING);
    } finally {
      await running.stop();
    }
  });
});

describe('the verifier of an API in the guide', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'api.mjs'), guideBlock('applications/README.md', 'api'));
  });
  afterAll(() => removeDirectory(folder));

  const RESOURCE = 'https://orders.applications-guide.example/api';
  /** Registers an application as a user, and gets a JWT for the API with its client credentials. */
  async function jwtOf(owner: string): Promise<string> {
    const { clientId, clientSecret } = await addApplication(
      app,
      {
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_post',
        svc_resource_scopes: 'orders:read',
      },
      { owner },
    );
    const { json } = await postForm(app, '/oauth/token', {
      client_id: clientId,
      client_secret: clientSecret,
      grant_type: 'client_credentials',
      scope: 'orders:read',
      resource: RESOURCE,
    });
    return json.access_token as string;
  }

  it('accepts a token of its organization, and refuses that of another with the same audience', async () => {
    await app.enrolled('eve@another-guide.example');
    const tokens = [await jwtOf(ADA), await jwtOf('eve@another-guide.example')];
    const orgId = await organizationOf(ada);
    const program = `import { verify } from './api.mjs';
      for (const token of ${JSON.stringify(tokens)})
        console.log(await verify(token).then(({ aud }) => aud, ({ message }) => message));`;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '--eval', program],
      {
        cwd: folder,
        env: { ...name.env, ISSUER: PUBLIC_URL, RESOURCE, ORGANIZATION: orgId },
      },
    );
    expect(stdout.trim().split('\n')).toEqual([RESOURCE, 'a token of another organization']);
  });

  it('stands beside configurations that all pin the organization', () => {
    const unpinned = filesLike('docs/**/*.md').flatMap((path) =>
      [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^```\w*[^\n]*\n([\s\S]*?)^```/gm)]
        .map(([, block = '']) => block)
        .filter((block) => /^\s*audiences?:|--oidc-client-id|jwtVerify\(/m.test(block))
        // These tokens need no check of the organization: each is for one client, which is of one
        // organization.
        .filter((block) => !/org_id|logout\+jwt|secevent\+jwt/.test(block))
        .map((block) => `${path}: ${block}`),
    );
    expect(unpinned).toEqual([]);
  });
});

describe('the settings of the other applications', () => {
  const pages = filesLike('docs/guides/applications/*.md');
  const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
  let metadata: Record<string, unknown>;
  beforeAll(async () => {
    metadata = (await app.client().get('/.well-known/openid-configuration')).json;
  });

  it('every address of the service is its issuer or one that the discovery has', () => {
    const addresses = new Set(Object.values(metadata).filter((value) => typeof value === 'string'));
    addresses.add(`${PUBLIC_URL}/.well-known/openid-configuration`);
    expect(addresses.size).toBeGreaterThan(8);
    const unknown = pages.flatMap((path) =>
      [...read(path).matchAll(/https:\/\/login\.example\.com[\w./-]*/g)]
        .map(([address]) => address.replace(/[.,]$/, ''))
        .filter((address) => !addresses.has(address))
        .map((address) => `${path}: ${address}`),
    );
    expect(unknown).toEqual([]);
  });

  it('what the pages say of algorithms, scopes, PKCE and client authentication is what the discovery says', () => {
    expect(metadata).toMatchObject({
      code_challenge_methods_supported: ['S256'],
      id_token_signing_alg_values_supported: expect.arrayContaining(['RS256', 'ES256']),
      scopes_supported: expect.arrayContaining(['openid', 'email', 'profile']),
      token_endpoint_auth_methods_supported: expect.arrayContaining([
        'client_secret_basic',
        'client_secret_post',
        'private_key_jwt',
      ]),
    });
    expect(metadata['grant_types_supported']).not.toContain('refresh_token');
    const claims = metadata['claims_supported'] as string[];
    for (const claim of ['email', 'hardware_verified', 'amr', 'acr', 'sub'])
      expect(claims).toContain(claim);
  });

  it('each page that no test runs says so in its first line', () => {
    const runs = pages.filter((path) => /^```\w+ test=/m.test(read(path)));
    expect(runs.length).toBe(5);
    for (const path of pages.filter((page) => !runs.includes(page)))
      expect(read(path).split('\n')[2], path).toMatch(/^Not run in CI: /);
  });

  it.each([
    ['without nonce and PKCE, as oauth2-proxy sends it', { scope: 'openid email' }],
    [
      'with a nonce alone, as Grafana and GitLab may',
      { scope: 'openid email profile', nonce: 'n' },
    ],
  ])('an authorization request %s is answered with a code', async (_what, parameters) => {
    const redirect = 'https://orders.example.com/callback';
    const { json } = await ada.post(
      '/api/v1/applications',
      { name: 'Proxy', type: 'web', redirect_uris: [redirect] },
      { address: newAddress() },
    );
    const query = new URLSearchParams({
      client_id: json.client_id as string,
      response_type: 'code',
      redirect_uri: redirect,
      state: 's',
      ...parameters,
    });
    let next = `/oauth/authorize?${query.toString()}`;
    for (let hops = 0; hops < 6 && !next.startsWith(redirect); hops += 1)
      next = (await ada.get(next, { address: newAddress() })).headers.get('location') ?? '';
    expect(new URL(next).searchParams.get('code')).toBeTruthy();
  });
});
