import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readCommandRelease } from '../../src/features/install/command-release.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { Maintainers, makeKey } from '../support/command-release.js';
import { NODE_VERSIONS, findNode } from '../support/node-versions.js';
import { findProgram, POWERSHELL_GRAMMAR_PYTHON, requires } from '../support/programs.js';
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
 * Makes a folder with links to a few programs. A PATH of this folder alone shows how the script
 * behaves on a machine without the other programs.
 */
function pathWith(...programs: string[]): string {
  const folder = join(home, 'path');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of programs) {
    const path = name.startsWith('/') ? name : findProgram(name);
    if (path !== undefined) symlinkSync(path, join(folder, path.split('/').at(-1) ?? name));
  }
  return folder;
}

const TOOLS = ['sh', 'mkdir', 'rm', 'mv', 'chmod', 'cut', 'sha256sum', 'env', 'cat'];
const NODE = findNode(20) ?? process.execPath;

/** Runs the installer with its text as the input of `sh`, as `curl … | sh` does. */
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

requires('ssh-keygen').describe('a server with the files of a release', () => {
  let folder: string;
  let maintainers: Maintainers;
  let released: string;
  let server: TestApp;
  const NEW = '0.15.0';
  const system = `linux-${process.arch}`;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    maintainers = await Maintainers.create(join(folder, 'maintainers'));
    const executable = gzipSync(`#!/bin/sh\nexec '${process.execPath}' '${SVC_BUNDLE}' "$@"\n`);
    released = maintainers.release(join(folder, 'release'), {
      [`svc-${NEW}-${system}.gz`]: executable,
      [`svc-${NEW}-win-x64.exe`]: 'MZ',
      [`svc-${NEW}.mjs`]: maintainers.script(NEW),
      [`svc-server-${NEW}-linux-x64.tar.gz`]: 'the service',
    });
    writeFileSync(join(folder, 'secret'), 'secret');
    server = await startTestApp({ environment: { SVC_CLIENT_RELEASE_DIR: released } });
  });
  afterAll(async () => {
    await server.close();
    await removeDirectory(folder);
  });

  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${server.baseUrl}${path}`, { headers: { 'x-forwarded-for': newAddress(), ...headers } });

  it('hands out the files of the command alone, whole or in part', async () => {
    for (const name of [
      'SHA256SUMS',
      'SHA256SUMS.sig',
      `svc-${NEW}-${system}.gz`,
      `svc-${NEW}.mjs`,
    ]) {
      const content = readFileSync(join(released, name));
      const answer = await get(`/install/files/${name}`);
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(content);
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-length': String(content.length),
        'content-type': 'application/octet-stream',
        'x-content-type-options': 'nosniff',
        etag: `"${sha256(content)}"`,
      });
      expect(answer.headers.get('content-encoding')).toBeNull();
    }
    const path = `/install/files/svc-${NEW}.mjs`;
    const part = await get(path, { range: 'bytes=2-11' });
    expect([part.status, await part.text()]).toEqual([206, maintainers.script(NEW).slice(2, 12)]);
    const etag = (await get(path)).headers.get('etag') ?? '';
    expect((await get(path, { 'if-none-match': etag })).status).toBe(304);
  });

  it.each([
    `svc-server-${NEW}-linux-x64.tar.gz`,
    'svc-0.14.0.mjs',
    '..%2fsecret',
    '..%2f..%2fsecret',
    '',
    'SHA256SUMS%00',
    'sha256sums',
    '__proto__',
  ])('answers 404 for %j', async (name) => {
    expect((await get(`/install/files/${name}`)).status).toBe(404);
  });

  it('offers the system of the visitor first', async () => {
    const first = async (headers: Record<string, string>) => {
      const text = await (await get('/install', { accept: 'text/html', ...headers })).text();
      expect(text).toContain(`irm ${server.baseUrl}/install.ps1 | iex`);
      expect(text).toContain(`curl -fsSL ${server.baseUrl}/install.sh | sh`);
      expect(text).toContain(sha256(Buffer.from(maintainers.script(NEW))));
      return text.indexOf('irm http') < text.indexOf('curl -fsSL') ? 'windows' : 'unix';
    };
    const windows = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36';
    const mac = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15';
    expect(await first({ 'user-agent': windows })).toBe('windows');
    expect(await first({ 'user-agent': mac })).toBe('unix');
    expect(await first({ 'user-agent': mac, 'sec-ch-ua-platform': '"Windows"' })).toBe('windows');
    expect(await first({ 'user-agent': windows, 'sec-ch-ua-platform': '"Linux"' })).toBe('unix');
    expect(await first({})).toBe('unix');
    const vary = (await get('/install')).headers.get('vary') ?? '';
    expect(vary).toMatch(/sec-ch-ua-platform.*user-agent/i);
  });

  const path = () => pathWith(...TOOLS, 'curl', 'uname', 'gzip', 'ssh-keygen', process.execPath);

  async function installFrom(
    options: Parameters<typeof runProgram>[2] & { shell?: string[] } = {},
  ) {
    const text = await (await get('/install.sh')).text();
    const [shell = '/bin/sh', ...args] = options.shell ?? [];
    // The requests of each run come from an IP address of their own, so that no two tests share a
    // rate limit.
    writeFileSync(join(home, '.curlrc'), `header = "X-Forwarded-For: ${newAddress()}"\n`);
    const env = { HOME: home, PATH: options.env?.['PATH'] ?? path(), ...options.env };
    return runProgram(shell, args, { input: text, env });
  }
  const signers = (line: string) => {
    mkdirSync(join(home, '.config/svc'), { recursive: true });
    writeFileSync(join(home, '.config/svc/allowed_signers'), line);
  };

  it.each([[['sh']], [['dash']], [['busybox', 'sh']]])(
    '/install.sh installs the executable by %j',
    async (words) => {
      const shell = [findProgram(words[0] ?? '') ?? '', ...words.slice(1)];
      const end = await installFrom({ shell });
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(readFileSync(installed(), 'utf8')).toContain(SVC_BUNDLE);
      expect(statSync(installed()).mode & 0o777).toBe(0o755);
      expect(readdirSync(join(home, '.local/bin'))).toEqual(['svc']);
    },
  );

  it('/install.sh demands the signature of the maintainers if their key is known', async () => {
    signers(maintainers.allowedSigner);
    expect(await installFrom()).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(join(home, '.local/bin'))).toEqual(['svc']);
  });

  it.each<[string, () => Record<string, string>, string]>([
    [
      'another key',
      () => {
        const key = makeKey(home, 'other');
        signers(`release@svc-server namespaces="file" ${key}\n`);
        return {};
      },
      'has no signature by a key of',
    ],
    ['no key in the file', () => (signers(''), {}), 'has no signature by a key of'],
    ['no such file', () => ({ SVC_ALLOWED_SIGNERS: '/nonexistent' }), 'has no signature by a key'],
    [
      'no ssh-keygen',
      () => {
        signers(maintainers.allowedSigner);
        return { PATH: pathWith(...TOOLS, 'curl', 'uname', 'gzip', process.execPath) };
      },
      'ssh-keygen is not installed',
    ],
  ])('/install.sh installs nothing with a demand for a signature and %s', async (_, env, text) => {
    const end = await installFrom({ env: env() });
    expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining(text) });
    expect(readdirSync(join(home, '.local/bin'))).toEqual([]);
  });

  it('/install.sh demands the signature for the script too, and of a server without a release', async () => {
    signers(maintainers.allowedSigner);
    const without = pathWith(...TOOLS, 'curl', 'ssh-keygen', process.execPath); // without uname
    const end = await installFrom({ env: { PATH: without } });
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(readFileSync(installed(), 'utf8') === maintainers.script(NEW)).toBe(true);
    const unsigned = await install(without);
    expect(unsigned).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('no signed release'),
    });
  });

  it('/install.ps1 names the executable of Windows and its hash', async () => {
    const text = await (await get('/install.ps1')).text();
    expect(text).toContain(`$SvcPath = '/install/files/svc-${NEW}-win-x64.exe'`);
    expect(text).toContain(`$SvcSha256 = '${sha256(Buffer.from('MZ'))}'`);
    expect((await app.client().get('/install.ps1')).status).toBe(404);
  });

  requires('the grammar of PowerShell').describe('the scripts for PowerShell', () => {
    it('have no error of syntax', async () => {
      const script = await (await get('/install.ps1')).text();
      const env = { HOME: home, PATH: process.env['PATH'] };
      const words = [SVC_BUNDLE, 'completions', 'powershell'];
      const completions = await runProgram(process.execPath, words, { env });
      expect(completions.status).toBe(0);
      for (const text of [script, completions.stdout]) {
        expect(await syntaxErrors(text)).toEqual([]);
        expect(await syntaxErrors(text.replace('{', ''))).not.toEqual([]);
      }
      // Windows PowerShell 5.1 reads a script without a byte order mark in the code page of the
      // system, so the text must be ASCII.
      expect(script + completions.stdout).toMatch(/^[\t\n\x20-\x7e]*$/);
    });
  });

  requires('shellcheck').describe('/install.sh', () => {
    it('has no finding of shellcheck', async () => {
      const text = await (await get('/install.sh')).text();
      // The installer prints a line for ~/.profile with its variables unexpanded, which SC2016
      // would report.
      const end = await runProgram('shellcheck', ['-s', 'sh', '-e', 'SC2016', '-'], {
        input: text,
        env: process.env,
      });
      expect(end).toMatchObject({ status: 0, stdout: '' });
    });
  });

  describe('a start with a folder that is wrong', () => {
    it.each<[string, (copy: string) => void, string]>([
      ['without a list', (copy) => rmSync(join(copy, 'SHA256SUMS')), 'is missing'],
      [
        'with a changed file',
        (copy) => writeFileSync(join(copy, `svc-${NEW}.mjs`), 'changed'),
        'is another file than listed',
      ],
      [
        'with the list of another release',
        (copy) => writeFileSync(join(copy, 'SHA256SUMS'), `${'0'.repeat(64)}  svc-0.1.0.mjs\n`),
        'is no signature of this',
      ],
      [
        'with a link out of the folder',
        (copy) => {
          rmSync(join(copy, `svc-${NEW}.mjs`));
          symlinkSync(join(released, `svc-${NEW}.mjs`), join(copy, `svc-${NEW}.mjs`));
        },
        'leads out of the folder',
      ],
      [
        'without a file of the command',
        (copy) => {
          for (const name of readdirSync(copy))
            if (name.startsWith('svc-')) rmSync(join(copy, name));
        },
        'no file of svc',
      ],
      [
        'that does not exist',
        (copy) => rmSync(copy, { recursive: true }),
        'SVC_CLIENT_RELEASE_DIR',
      ],
    ])('%s fails with its name and the reason', async (_, change, text) => {
      const copy = join(home, 'copy');
      cpSync(released, copy, { recursive: true });
      change(copy);
      await expect(readCommandRelease(copy)).rejects.toThrow(text);
      await expect(readCommandRelease(copy)).rejects.toThrow('SVC_CLIENT_RELEASE_DIR');
    });

    it('reads files behind links inside of the folder, as a volume of Kubernetes has them', async () => {
      const copy = join(home, 'copy');
      cpSync(released, join(copy, '..data'), { recursive: true });
      for (const name of readdirSync(released)) symlinkSync(`..data/${name}`, join(copy, name));
      const { version, files } = await readCommandRelease(copy);
      expect([version, files.size]).toEqual([NEW, 5]);
    });

    it('ends the start', async () => {
      const environment = { SVC_CLIENT_RELEASE_DIR: join(home, 'nowhere') };
      await expect(startTestApp({ environment })).rejects.toThrow('SVC_CLIENT_RELEASE_DIR');
    });
  });
});

/** Returns the lines with an error of syntax of a script for PowerShell. */
async function syntaxErrors(script: string): Promise<string[]> {
  const program = `import sys, tree_sitter_powershell as powershell
from tree_sitter import Language, Parser
tree = Parser(Language(powershell.language())).parse(sys.stdin.buffer.read())
nodes = [tree.root_node]
while nodes:
    node = nodes.pop()
    nodes += node.children
    if node.is_error or node.is_missing:
        print(node.start_point[0] + 1, node.text[:60])`;
  const args = ['-c', program];
  const end = await runProgram(POWERSHELL_GRAMMAR_PYTHON, args, { input: script, env: {} });
  expect(end).toMatchObject({ status: 0, stderr: '' });
  return end.stdout.split('\n').filter((line) => line !== '');
}

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

// A relay between the command and the service answers the first request with a rate limit. The test
// checks that the command waits for the time in the answer.
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
