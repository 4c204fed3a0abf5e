import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { startServerProcess, type ServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';

/**
 * Waits until a process has ended. Returns its status and the lines of its output, one for each
 * problem.
 */
async function outcome(server: ServerProcess) {
  const status = await server.ended;
  return { status, lines: server.output().trim().split('\n') };
}

describe('node dist/main.js', () => {
  let folder: string;
  let idp: DemoIdentityProvider;
  let port: number;
  const running: ServerProcess[] = [];

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    port = await freePort();
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `http://localhost:${port}/oauth/callback`,
    });
  });
  afterEach(async () => {
    for (const server of running.splice(0)) {
      server.signal('SIGTERM');
      await server.ended;
    }
  });
  afterAll(async () => {
    await idp.close();
    await removeDirectory(folder);
  });

  const start = (
    environment: Record<string, string>,
    nodeArguments: readonly string[] = [],
  ): ServerProcess => {
    const server = startServerProcess('main.js', environment, { cwd: folder, nodeArguments });
    running.push(server);
    return server;
  };
  const working = () => ({
    SVC_BASE_URL: `http://localhost:${port}`,
    SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
    SVC_DATA_DIR: join(folder, 'data'),
    ...providerEnvironment(idp.issuer),
  });

  it('with an empty environment exits 1 and names every missing variable at once', async () => {
    expect(await outcome(start({}))).toEqual({
      status: 1,
      lines: [
        'SVC_JWT_SECRET: is required',
        'SVC_IDPS: at least one upstream identity provider is required',
      ],
    });
  });

  it('names every wrong variable, and never a value', async () => {
    const value = 'planted-secret-value';
    const { status, lines } = await outcome(
      start({
        ...working(),
        SVC_JWT_SECRET: value,
        SVC_ALLOWED_AAGUIDS: value,
        SVC_LOG_FORMAT: value,
        SVC_IDP_DEMO_ISSUER: value,
        RUST_LOG: 'info',
      }),
    );
    expect(status).toBe(1);
    expect(lines.map((line) => line.split(':')[0]).toSorted()).toEqual([
      'SVC_ALLOWED_AAGUIDS',
      'SVC_IDP_DEMO_ISSUER',
      'SVC_JWT_SECRET',
      'SVC_LOG_FORMAT',
    ]);
    expect(lines.join('\n')).not.toContain(value);
  });

  it('on an older Node fails with one line', async () => {
    const pretend =
      "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.20.2'})";
    expect(await outcome(start({}, [`--import=${pretend}`]))).toEqual({
      status: 1,
      lines: ['svc-server needs Node 24 or newer; this is 20.20.2.'],
    });
  });

  it('names .env if it is a folder, as a container makes of a missing file', async () => {
    await mkdir(join(folder, '.env'));
    expect(await outcome(start({}))).toEqual({
      status: 1,
      lines: ['.env: must be a readable file (EISDIR)'],
    });
    await rmdir(join(folder, '.env'));
  });

  it('reads .env, which the environment overrides', async () => {
    await writeFile(join(folder, '.env'), 'SVC_JWT_SECRET=from-a-file-but-too-short\nSVC_IDPS=\n');
    const fromFile = await outcome(start({}));
    expect(fromFile.lines).toEqual([
      'SVC_JWT_SECRET: must have at least 32 characters',
      'SVC_IDPS: at least one upstream identity provider is required',
    ]);
    const overridden = await outcome(start({ SVC_JWT_SECRET: 'x'.repeat(40) }));
    expect(overridden.lines[0]).toBe('SVC_JWT_SECRET: must not be one repeated character');
    await writeFile(join(folder, '.env'), '');
  });

  it('serves on the embedded database, survives its end, and stops on SIGTERM with status 0', async () => {
    const server = start(working());
    await server.printed(/is served on port/);
    const client = new Client(`http://localhost:${port}`);
    expect((await client.get('/health/ready')).json).toEqual({ status: 'ready' });
    const caKey = (await client.get('/v1/credentials/ssh/ca')).text;

    const pidFile = join(folder, 'data', 'postgres', 'postmaster.pid');
    const [pid] = (await readFile(pidFile, 'utf8')).split('\n');
    process.kill(Number(pid), 'SIGKILL');
    await expect.poll(async () => (await client.get('/health/ready')).status).toBe(200);
    expect((await client.get('/health')).text).toBe('ok');

    server.signal('SIGTERM');
    expect(await server.ended).toBe(0);
    // The next start finds the data: it has the same SSH CA key.
    const again = start(working());
    await again.printed(/is served on port/);
    expect((await client.get('/v1/credentials/ssh/ca')).text).toBe(caKey);
  });

  it('starts again with its data after a kill -9', async () => {
    const environment = working();
    const server = start(environment);
    await server.printed(/is served on port/);
    const client = new Client(`http://localhost:${port}`);
    const caKey = (await client.get('/v1/credentials/ssh/ca')).text;
    server.signal('SIGKILL');
    await server.ended;
    const again = start(environment);
    await again.printed(/is served on port/);
    expect((await client.get('/v1/credentials/ssh/ca')).text).toBe(caKey);
  });

  it('never logs secrets', async () => {
    const server = start({ ...working(), RUST_LOG: 'trace', SVC_LOG_FORMAT: 'json' });
    await server.printed(/is served on port/);
    const client = new Client(`http://localhost:${port}`);
    const secrets = {
      cookie: 'planted-cookie-secret',
      bearer: 'planted-bearer-secret',
      code: 'planted-code-secret',
      state: 'planted-state-secret',
      body: 'planted-body-secret',
    };
    client.setCookie('svc_session', secrets.cookie);
    await client.get('/v1/keys');
    await client.get('/v1/keys', { headers: { authorization: `Bearer ${secrets.bearer}` } });
    await client.get(`/oauth/callback?code=${secrets.code}&state=${secrets.state}`);
    await client.post('/login/webauthn/complete', {
      state: secrets.state,
      credential: secrets.body,
    });
    await client.get('/%zz');
    await client.signIn('log@acme.example');
    const token = client.cookie('svc_session') ?? '';
    expect(token).toHaveLength(43);

    await server.printed(/"msg":"GET \/enroll 200"/);
    const log = server.output();
    for (const secret of [...Object.values(secrets), token, working().SVC_JWT_SECRET]) {
      expect(log).not.toContain(secret);
    }
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const served = lines.filter(({ msg }) => /^(GET|POST) \//.test(msg));
    expect(served.length).toBeGreaterThan(5);
    for (const line of served) expect(line.interactionId).toMatch(/^[0-9a-f-]{36}$/);
    const warnings = lines.filter(({ context }) => context === 'errors');
    expect(warnings.length).toBeGreaterThan(3);
    for (const line of warnings) expect(line.interactionId).toMatch(/^[0-9a-f-]{36}$/);
  });
});
