import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { NODE_VERSIONS, findNode } from '../support/node-versions.js';
import { findProgram, requires } from '../support/programs.js';
import { SVC_BUNDLE, runProgram } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

let app: TestApp;
let home: string;
beforeAll(async () => {
  app = await startTestApp();
});
afterAll(() => app.close());
beforeEach(async () => {
  home = await makeTemporaryDirectory();
});
afterEach(() => removeDirectory(home));

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const installed = () => join(home, '.local/bin/svc');

/**
 * Makes a folder with links to a few programs, so that a machine without the others can be shown.
 */
function pathWith(...programs: string[]): string {
  const folder = join(home, 'path');
  mkdirSync(folder, { recursive: true });
  for (const name of programs) {
    const path = name.startsWith('/') ? name : findProgram(name);
    if (path !== undefined) symlinkSync(path, join(folder, path.split('/').at(-1) ?? name));
  }
  return folder;
}

const TOOLS = ['sh', 'mkdir', 'rm', 'mv', 'chmod', 'cut', 'sha256sum', 'env', 'cat'];
const NODE = findNode(20) ?? process.execPath;

/** Runs the script as `curl … | sh` does. */
async function install(path = pathWith(...TOOLS, 'curl', NODE), change = (text: string) => text) {
  const { text } = await app.client().get('/install.sh');
  const env = { HOME: home, PATH: path };
  return runProgram('/bin/sh', [], { input: change(text), env });
}

describe('/install', () => {
  it('shows two lines to paste, and the SHA-256 of the file that the server hands out', async () => {
    const page = await app.client().get('/install');
    const bundle = readFileSync(SVC_BUNDLE);
    expect(page.text).toContain(
      `curl -fsSL ${app.baseUrl}/install.sh | sh\n~/.local/bin/svc login`,
    );
    expect(page.text).toContain(sha256(bundle));
    const file = await fetch(`${app.baseUrl}/static/svc.mjs`);
    expect(sha256(Buffer.from(await file.arrayBuffer()))).toBe(sha256(bundle));
    const tag = file.headers.get('etag') ?? '';
    const again = await app.client().get('/static/svc.mjs', { headers: { 'if-none-match': tag } });
    expect(again.status).toBe(304);
  });
});

describe('/install.sh', () => {
  it.each(['curl', 'wget'])(
    'installs the command with %s, and remembers the server',
    async (tool) => {
      const end = await install(pathWith(...TOOLS, tool, NODE));
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(end.stdout).toContain('is not on your PATH');
      expect(readFileSync(installed())).toEqual(readFileSync(SVC_BUNDLE));
      expect(statSync(installed()).mode & 0o777).toBe(0o755);
      const config = JSON.parse(readFileSync(join(home, '.config/svc/config.json'), 'utf8'));
      expect(config).toMatchObject({ server: app.baseUrl });
      expect(readdirSync(join(home, '.local/bin'))).toEqual(['svc']);
    },
  );

  it('run twice changes nothing', async () => {
    await install();
    const before = readFileSync(join(home, '.config/svc/config.json'), 'utf8');
    const path = `${join(home, '.local/bin')}:${join(home, 'path')}`;
    const end = await install(path);
    expect(end).toMatchObject({ status: 0, stdout: expect.stringContaining('Next: svc login') });
    expect(readFileSync(join(home, '.config/svc/config.json'), 'utf8')).toBe(before);
  });

  it('refuses a file with another SHA-256, and leaves nothing', async () => {
    const end = await install(undefined, (text) => text.replace(/sha256='\w{4}/, "sha256='0000"));
    expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('SHA-256') });
    expect(readdirSync(join(home, '.local/bin'))).toEqual([]);
  });

  it('says what to do without Node, with an old Node, and without a downloader', async () => {
    const without = await install(pathWith(...TOOLS, 'curl'));
    expect(without).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Node 20 or newer'),
    });
    const old = join(home, 'old');
    mkdirSync(old);
    writeFileSync(
      join(old, 'node'),
      '#!/bin/sh\n[ "$1" = --version ] && echo v18.20.0 || exit 1\n',
    );
    chmodSync(join(old, 'node'), 0o755);
    const tooOld = await install(`${old}:${join(home, 'path')}`);
    expect(tooOld).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('v18.20.0 is too old'),
    });
    expect(existsSync(installed())).toBe(false);
  });

  it('does nothing when it was cut off', async () => {
    const end = await install(undefined, (text) => text.slice(0, text.lastIndexOf('main')));
    expect(end).toMatchObject({ status: 0, stdout: '' });
    expect(existsSync(join(home, '.local'))).toBe(false);
  });

  it('leaves nothing when the server is away', async () => {
    const end = await install(undefined, (text) =>
      text.replace(/^server='.*'/m, "server='http://localhost:1'"),
    );
    expect(end).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('cannot be downloaded'),
    });
    expect(readdirSync(join(home, '.local/bin'))).toEqual([]);
  });
});

describe.each(NODE_VERSIONS)('the command on Node %s', (version) => {
  requires(`node@${version}`).describe('real program', () => {
    it('starts, asks the server, and ends with the right status', async () => {
      const node = findNode(version) ?? '';
      const file = join(home, 'svc');
      writeFileSync(file, readFileSync(SVC_BUNDLE));
      const env = { HOME: home, PATH: process.env['PATH'] };
      const run = (...args: string[]) => runProgram(node, [file, ...args], { env });
      expect(await run('--version')).toMatchObject({ status: 0, stderr: '' });
      expect(await run('use', app.baseUrl)).toMatchObject({ status: 0, stderr: '' });
      expect(await run('status')).toMatchObject({ status: 3 });
      const doctor = await run('doctor', '--json');
      const { findings } = JSON.parse(doctor.stdout) as { findings: { name: string }[] };
      expect(findings).toContainEqual(expect.objectContaining({ name: 'node', state: 'ok' }));
      expect(findings).toContainEqual(expect.objectContaining({ name: 'clock', state: 'ok' }));
    });
  });
});

describe('an older Node', () => {
  it('is told so in one line', async () => {
    const copy = join(home, 'svc.cjs');
    writeFileSync(copy, readFileSync(SVC_BUNDLE));
    const probe = `Object.defineProperty(process.versions, 'node', { value: '18.20.0' });
      require(${JSON.stringify(copy)});`;
    const end = await runProgram(process.execPath, ['-e', probe]);
    expect(end).toMatchObject({ status: 1, stdout: '' });
    expect(end.stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(end.stderr).toContain('needs Node 20');
  });
});

// A relay that limits the first request shows that the command waits as it is told.
describe('a server that limits requests', () => {
  it('is asked again after exactly the seconds that it states', async () => {
    const times: number[] = [];
    const grants = ['urn:svc:params:oauth:grant-type:fido2'];
    const relay = createServer(({ url, headers }, response) => {
      times.push(performance.now());
      const metadata = { issuer: `http://${headers.host}`, grant_types_supported: grants };
      if (times.length === 1) response.writeHead(429, { 'retry-after': '1' }).end();
      else if (url?.startsWith('/.well-known/')) response.end(JSON.stringify(metadata));
      else response.writeHead(403, { 'content-type': 'application/json' }).end('{"detail":"No."}');
    });
    await new Promise<void>((done) => relay.listen(0, '127.0.0.1', done));
    const { port } = relay.address() as { port: number };
    const file = join(home, 'svc');
    writeFileSync(file, readFileSync(SVC_BUNDLE));
    const args = [file, 'login', '--device', '--server', `http://127.0.0.1:${port}`];
    const end = await runProgram(process.execPath, args, { env: { HOME: home } });
    relay.closeAllConnections();
    relay.close();
    expect(end).toMatchObject({ status: 4, stderr: expect.stringContaining('No.') });
    expect(times).toHaveLength(3);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(990);
  });
});
