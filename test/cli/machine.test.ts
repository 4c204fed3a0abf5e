import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { sleep } from '../../packages/svc/src/program/clock.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { newAddress } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { SvcHome, runProgram } from '../support/svc-command.js';

let app: TestApp;
let ada: EnrolledUser;
let home: SvcHome;
beforeAll(async () => {
  app = await startTestApp();
  ada = await app.enrolled('ada@svc-machine.example');
});
afterAll(() => app.close());
beforeEach(async () => {
  home = await SvcHome.create();
});
afterEach(() => home.remove());

const svc = (...args: string[]) => home.run(args);
interface Found {
  readonly name: string;
  readonly state: string;
  readonly what_to_do?: string;
}
const findings = async () =>
  (JSON.parse((await svc('doctor', '--json')).stdout) as { findings: Found[] }).findings;

describe('svc doctor', () => {
  it('finds no problem on a machine that is logged in', async () => {
    await home.logIn(app, ada);
    expect(await svc('doctor')).toMatchObject({ status: 0, stderr: '' });
    const states = Object.fromEntries((await findings()).map(({ name, state }) => [name, state]));
    expect(states).toMatchObject({
      node: 'ok',
      path: 'ok',
      server: 'ok',
      clock: 'ok',
      login: 'ok',
      token: 'ok',
      files: 'ok',
    });
  });

  it('tells of a server that is away, of open files, and of a missing login, each with a next step', async () => {
    expect(await svc('doctor')).toMatchObject({ status: 1 });
    await home.logIn(app, ada);
    chmodSync(home.state(app, 'dpop-key.json'), 0o640);
    const problems = (await findings()).filter(({ state }) => state === 'problem');
    expect(problems.map(({ name }) => name)).toContain('files');
    writeFileSync(home.config, JSON.stringify({ server: 'http://localhost:1' }));
    const away = (await findings()).filter(({ state }) => state === 'problem');
    expect(away.map(({ name }) => name)).toEqual(['server', 'login']);
    expect(away.every(({ what_to_do: next }) => next)).toBe(true);
  });

  it('tells which tools svc setup has set up, not which files happen to name svc', async () => {
    await home.logIn(app, ada);
    const ssh = async () => (await findings()).find(({ name }) => name === 'ssh')?.state;
    mkdirSync(join(home.path, '.ssh'));
    writeFileSync(join(home.path, '.ssh/config'), 'Host svc.example\n');
    expect(await ssh()).toBe('note');
    await svc('setup', 'ssh', '--host', 'a.example', '--yes');
    expect(await ssh()).toBe('ok');
  });

  it('finds no problem in a link that leads nowhere in the folder of secrets', async () => {
    await home.logIn(app, ada);
    symlinkSync('nowhere', home.state(app, 'link'));
    expect(await svc('doctor')).toMatchObject({ status: 0 });
  });

  it('notices a wrong clock', async () => {
    const server = createServer((request, response) => {
      const issuer = `http://${request.headers.host}`;
      response.writeHead(200, { date: new Date(Date.now() - 3_600_000).toUTCString() });
      const grants = ['urn:svc:params:oauth:grant-type:fido2'];
      response.end(JSON.stringify({ issuer, grant_types_supported: grants }));
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as { port: number };
    await svc('use', `http://127.0.0.1:${port}`, '--offline');
    const clock = (await findings()).find(({ name }) => name === 'clock');
    server.closeAllConnections();
    server.close();
    expect(clock).toMatchObject({ state: 'problem' });
  });
});

describe('svc use and --server', () => {
  it('keep several servers apart', async () => {
    await home.logIn(app, ada);
    expect(await svc('use', 'login.example.com', '--offline')).toMatchObject({ status: 0 });
    expect(await svc('status')).toMatchObject({ status: 3 });
    expect(await svc('status', '--server', app.baseUrl)).toMatchObject({ status: 0 });
    const { servers } = JSON.parse(readFileSync(home.config, 'utf8'));
    expect(servers).toEqual([app.baseUrl, 'https://login.example.com']);
  });

  it.each([
    '..',
    '.',
    'https://..',
    'https://a;id',
    'https://$(id)',
    'https://a`id`',
    "https://a'b",
  ])(
    'refuse %s, which is no host: it leaves the folder of secrets, or is a command of a shell',
    async (address) => {
      await home.logIn(app, ada);
      for (const args of [
        ['use', address],
        ['logout', '--server', address],
        ['status', '--server', address],
      ]) {
        expect(await svc(...args)).toMatchObject({
          status: 2,
          stderr: expect.stringContaining('https://login'),
        });
      }
      expect(existsSync(home.state(app, 'token.json'))).toBe(true);
    },
  );

  it.each(['login.example.com', '[::1]', '10.0.0.1:8443', 'a_b.example', 'bücher.example'])(
    'take %s',
    async (address) => {
      expect(await svc('use', address, '--offline')).toMatchObject({ status: 0 });
    },
  );

  it('SVC_HOME moves both folders', async () => {
    const env = { SVC_HOME: join(home.path, 'other') };
    expect(await home.run(['use', 'login.example.com', '--offline'], { env })).toMatchObject({
      status: 0,
    });
    expect(existsSync(join(home.path, 'other/config.json'))).toBe(true);
    expect(existsSync(home.config)).toBe(false);
  });
});

describe('svc keys', () => {
  it('lists and renames, and refuses what it does not know', async () => {
    await home.logIn(app, ada);
    const { keys } = JSON.parse((await svc('keys', '--json')).stdout);
    expect(keys).toHaveLength(1);
    expect(await svc('keys', 'rename', keys[0].id, 'Desk')).toMatchObject({ status: 0 });
    expect((await svc('keys')).stdout).toContain('Desk');
    expect(await svc('keys', 'rename', keys[0].id, '')).toMatchObject({ status: 4 });
    expect(await svc('keys', 'rename', 'ffffff', 'x')).toMatchObject({ status: 1 });
    expect(await svc('keys', 'rename')).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('\n            svc keys add\n'),
    });
    expect(await svc('keys', 'explode')).toMatchObject({ status: 2 });
    expect(await svc('keys', 'constructor')).toMatchObject({ status: 2 });
  });

  it('never removes the last key', async () => {
    await home.logIn(app, ada);
    const { keys } = JSON.parse((await svc('keys', '--json')).stdout);
    const end = await svc('keys', 'remove', keys[0].id, '--yes');
    expect(end.status).toBe(4);
    expect((await ada.client.get('/v1/keys', { address: newAddress() })).json.keys).toHaveLength(1);
  });

  it('asks for a fresh touch, and says so where no person is', async () => {
    const carol = await app.enrolled('carol@svc-machine.example');
    await home.logIn(app, carol);
    await app.dataSource.query(
      "UPDATE sessions SET auth_time = auth_time - interval '5 minutes' WHERE user_id = (SELECT id FROM users WHERE email = 'carol@svc-machine.example')",
    );
    const { keys } = JSON.parse((await svc('keys', '--json')).stdout);
    const end = await svc('keys', 'remove', keys[0].id, '--yes');
    expect(end).toMatchObject({ status: 3, stderr: expect.stringContaining('svc login') });
  });
});

describe('two processes at once', () => {
  it('lose no server of the configuration', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `https://s${index}.example`);
    const ends = await Promise.all(names.map((name) => svc('use', name, '--offline')));
    expect(ends.map(({ status }) => status)).toEqual(names.map(() => 0));
    const { servers } = JSON.parse(readFileSync(home.config, 'utf8'));
    expect(servers.toSorted()).toEqual(names);
  });

  it('take over the lock of a process that died', async () => {
    await svc('use', 'https://first.example', '--offline');
    const lock = join(home.path, '.config/svc/config.lock');
    const dead = await runProgram(process.execPath, [
      '-e',
      'process.stdout.write(String(process.pid))',
    ]);
    writeFileSync(lock, `${dead.stdout} x\n`);
    const ends = await Promise.all([
      svc('use', 'https://a.example', '--offline'),
      svc('use', 'https://b.example', '--offline'),
    ]);
    expect(ends.map(({ status }) => status)).toEqual([0, 0]);
    expect(JSON.parse(readFileSync(home.config, 'utf8')).servers).toHaveLength(3);
    expect(existsSync(lock)).toBe(false);
  });
});

describe('a full disk', () => {
  it('is named with the next step, also for a lock', async () => {
    const preload = join(home.path, 'full.cjs');
    const lines = [
      "const fs = require('node:fs');",
      'const { writeSync } = fs;',
      "const full = Object.assign(new Error('no space left'), { code: 'ENOSPC' });",
      'fs.writeSync = (to, ...more) => { if (to > 2) throw full; return writeSync(to, ...more); };',
    ];
    writeFileSync(preload, lines.join('\n'));
    const env = { NODE_OPTIONS: `--require=${preload}` };
    const whatToDo =
      'cannot be used: the disk is full.\n     Make room on the disk, and run it again.';
    for (const [args, path] of [
      [['use', 'https://a.example', '--offline'], '.config/svc'],
      [['setup', 'ssh', '--host', 'a.example', '--yes'], '.ssh/config'],
    ] as const) {
      home.useServer(app);
      const end = await home.run(args, { env });
      expect(end).toMatchObject({
        status: 1,
        stderr: `svc: ${join(home.path, path)} ${whatToDo}\n`,
      });
    }
    expect(existsSync(join(home.path, '.ssh/config'))).toBe(false);
  });
});

describe.each(['bash', 'zsh', 'fish'])('the completions of %s', (shell) => {
  requires(shell).describe('real shell', () => {
    it('parse', async () => {
      const { stdout, status } = await svc('completions', shell);
      expect(status).toBe(0);
      expect(stdout).toContain('doctor');
      const file = join(home.path, 'completions');
      writeFileSync(file, stdout);
      const end = await runProgram(shell, ['-n', file], { env: home.env });
      expect(end).toMatchObject({ status: 0, stderr: '' });
    });
  });
});

requires('bash').describe('bash', () => {
  it('completes commands and their words', async () => {
    const { stdout } = await svc('completions', 'bash');
    const complete = async (...words: string[]) => {
      const script = `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _svc; echo "\${COMPREPLY[*]}"`;
      return (await runProgram('bash', ['-c', script])).stdout.trim().split(' ');
    };
    expect(await complete('svc', 'log')).toEqual(['login', 'logout']);
    expect(await complete('svc', 'completions', '')).toEqual(['bash', 'zsh', 'fish', 'powershell']);
  });
});

requires('script').describe('the command in a terminal', () => {
  const inTerminal = (...args: string[]) => home.runInTerminal(args);

  it.each([
    [['help'], 0, 'svc help COMMAND explains one.'],
    [['login', '--help'], 0, '--fido2'],
    [['status'], 3, 'Run: svc login --server'],
    [['keys'], 3, 'Run: svc login --server'],
    [['logout'], 3, 'Run: svc login --server'],
    [['login'], 3, 'Run: svc login --server'],
    [['login', '--device', '--fido2', '--server', 'x.example'], 2, 'exclude each other'],
    [['login', '--server', 'ftp://x.example'], 2, 'must begin with https://'],
    [['login', '--device', '--server', 'https://nowhere.invalid'], 1, 'DNS'],
    [['completions'], 2, 'The shell is missing.'],
    [['completions', 'tcsh'], 2, 'tcsh is not known.'],
  ])('%j ends with status %i', async (args, status, text) => {
    const end = await inTerminal(...args);
    expect([args, end.status]).toEqual([args, status]);
    expect(end.stdout).toContain(text);
  });

  it('tells that the server refuses the connection', async () => {
    const end = await inTerminal(
      'login',
      '--device',
      '--server',
      `http://localhost:${await freePort()}`,
    );
    expect(end).toMatchObject({ status: 1, stdout: expect.stringContaining('refused') });
  });

  it('shows the login, asks before it removes a key, and logs out', async () => {
    await home.logIn(app, ada);
    expect(await inTerminal('status')).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('until'),
    });
    expect(await inTerminal('doctor')).toMatchObject({ status: 0 });
    const { keys } = JSON.parse((await svc('keys', '--json')).stdout);
    const no = await home.runInTerminal(['keys', 'remove', keys[0].id], { input: 'n\n' });
    expect(no).toMatchObject({ status: 1, stdout: expect.stringContaining('Nothing was removed') });
    expect(await inTerminal('logout')).toMatchObject({ status: 0 });
    expect(await inTerminal('status')).toMatchObject({ status: 3 });
  });
});

describe('text from outside', () => {
  it('never controls the terminal', async () => {
    const { stderr } = await svc('\u001b]0;owned\u0007\u202ex\r\u009b2J');
    expect(stderr).toBe(
      'svc: There is no command ]0;ownedx2J.\n     Usage: svc COMMAND [--server URL] [--json] [--help]; svc help lists them\n',
    );
  });
});

describe('the answers of a server', () => {
  const answers: Record<string, unknown> = {};
  const server = createServer((request, response) => {
    response.end(JSON.stringify(answers[String(request.url)] ?? null));
  });
  let hostile: { baseUrl: string };
  beforeAll(async () => {
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    hostile = { baseUrl: `http://127.0.0.1:${(server.address() as { port: number }).port}` };
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    home.writeState(hostile, 'token.json', {
      access_token: 'x',
      scope: '',
      expires_at: '2100-01-01T00:00:00Z',
      user: { id: 'a' },
    });
    home.useServer(hostile);
  });

  it('write no lines of their own into ~/.gitconfig, nor into the answer to git', async () => {
    const webUrl = 'https://github.com"]\n[core]\n\tpager = touch planted\n#';
    answers['/v1/credentials/github/status'] = { configured: true, web_url: webUrl };
    expect(await svc('setup', 'git', '--yes')).toMatchObject({ status: 2, stdout: '' });
    expect(existsSync(join(home.path, '.gitconfig'))).toBe(false);
    answers['/v1/credentials/github/status'] = { configured: true, web_url: 'https://github.com' };
    const expires = '2100-01-01T00:00:00Z';
    answers['/v1/credentials/github/token'] = { token: 'x\nhost=evil', expires_at: expires };
    const input = 'protocol=https\nhost=github.com\npath=acme/app.git\n\n';
    const end = await home.run(['git', 'credential', 'get'], { input });
    expect(end).toMatchObject({ status: 1, stdout: 'quit=1\n' });
  });

  it('store nothing that is no certificate, and are named when they are no document', async () => {
    answers['/v1/credentials/ssh'] = { certificate: 'ssh-ed25519 AAAA' };
    for (const args of [['ssh', 'check', 'a.example'], ['keys'], ['ssh', 'cert']]) {
      const end = await svc(...args);
      expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('of the server is') });
    }
    expect(existsSync(home.state(hostile, 'ssh/id-cert.pub'))).toBe(false);
  });
});

describe('a wait that a server demands', () => {
  afterEach(() => void vi.useRealTimers());

  it('is not cut to nothing when it is longer than a timer', async () => {
    vi.useFakeTimers();
    let isOver = false;
    void sleep(30 * 86_400_000).then(() => (isOver = true));
    await vi.advanceTimersByTimeAsync(86_400_000);
    expect(isOver).toBe(false);
  });
});
