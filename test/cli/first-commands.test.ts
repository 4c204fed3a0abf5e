import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createSilentServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listenOnLoopback, stopServer } from '@svc/stand-ins/loopback-server';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { keepOpened } from '../support/svc-login.js';
import { commandWords, runProgram, SvcHome } from '../support/svc-command.js';

const ROLE = 'arn:aws:iam::123456789012:role/engineer';
/** The commands of svc that ssh, the AWS SDK, kubectl and git run and wait for. */
const TOOLS = {
  ssh: ['ssh', 'check', 'web1.example'],
  aws: ['aws', 'credential-process', '--role', ROLE],
  kubectl: ['kubectl', 'token', '--resource', 'https://prod.k8s.example'],
  git: ['git', 'credential', 'get'],
  signing: ['git', 'sign', '-Y', 'sign', '-n', 'git', '-f', 'key.pub', 'commit'],
} as const;
const OF_GIT = 'protocol=https\nhost=github.com\npath=acme/app.git\n\n';

let home: SvcHome;
beforeEach(async () => {
  home = await SvcHome.create();
  keepOpened(home);
});
afterEach(() => home.remove());

const svc = (...args: string[]) => home.run(args);
const hasOpened = () => existsSync(join(home.path, 'opened'));

describe('help', () => {
  it.each([
    [['--help'], 'svc help COMMAND explains one.'],
    [['-h'], 'svc help COMMAND explains one.'],
    [['help'], 'svc help COMMAND explains one.'],
    [['help', '--help'], 'svc help COMMAND explains one.'],
    [['-help'], 'svc help COMMAND explains one.'],
    [['help', 'login'], 'Usage: svc login'],
    [['login', '--help'], 'Usage: svc login'],
    [['login', '-h'], 'Usage: svc login'],
    [['login', 'help'], 'Usage: svc login'],
    [['--help', 'login'], 'Usage: svc login'],
    [['version'], 'svc 0.'],
  ])('%j prints to standard output and ends with status 0', async (args, text) => {
    const end = await svc(...args);
    expect(end).toMatchObject({ status: 0, stderr: '' });
    expect(end.stdout).toContain(text);
  });

  it.each([
    [['logn'], 'There is no command logn. Did you mean login?'],
    [['help', 'stauts'], 'There is no command stauts. Did you mean status?'],
    [['whoami'], 'Did you mean status?'],
    [['keys', 'renam'], 'Did you mean svc keys rename?'],
    [['admin', 'members', 'promot'], 'Did you mean svc admin members promote?'],
    [['login', '--deivce', '--server', 'x.example'], 'Did you mean --device?'],
    [['--vers'], 'Did you mean --version?'],
    [['nonsense'], 'There is no command nonsense.\n'],
  ])('%j names the word that is meant, with status 2', async (args, text) => {
    const end = await svc(...args);
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toContain(text);
  });
});

describe('an option with an empty value', () => {
  it.each([
    ['admin', 'members', 'list', '--role', ''],
    ['admin', 'audit', '--person='],
    ['setup', 'ssh', '--host', 'a.example', '--principal', '', '--dry-run'],
    ['status', '--server', ''],
    ['--server=', 'status'],
  ])('is wrong usage, and does not count as absent: %j %j %j', async (...args) => {
    await svc('use', 'https://login.example.com', '--offline');
    const end = await svc(...args);
    expect(end).toMatchObject({ status: 2, stdout: '' });
    expect(end.stderr).toMatch(/^svc: --\S+ needs an? \w+\.\n {5}Usage: /);
  });
});

describe('a standard stream on a full disk', () => {
  const shell = async (line: string) => {
    const command = line.replace('svc', commandWords(home.program).join(' '));
    return runProgram('sh', ['-c', command], { env: home.env });
  };

  it.each([
    ['svc version >/dev/full', 1],
    ['svc version --json >/dev/full', 1],
    ['svc nonsense --json >/dev/full', 2],
    ['svc nonsense 2>/dev/full', 2],
  ])('%s ends with its exit status, and says so in lines', async (line, status) => {
    const end = await shell(line);
    expect(end).toMatchObject({ status, stdout: '' });
    expect(end.stderr.split('\n').filter((text) => !/^(?:svc: | {5}\S|$)/.test(text))).toEqual([]);
    if (status === 1) expect(end.stderr).toContain('cannot be written: the disk is full.');
  });
});

describe('a page that a proxy or the network of a hotel shows in place of the server', () => {
  const COMMANDS = [
    ['keys'],
    ['kubectl', 'token', '--resource', 'https://prod.k8s.example'],
    ['git', 'signers'],
    ['api', 'GET', '/v1/keys'],
    ['login', '--device'],
  ];
  it.each([
    [200, 'The answer of the server is not JSON', COMMANDS],
    [302, 'Another page answers in place of the server (302)', COMMANDS],
  ])('with status %d is named, and is not printed as an answer', async (code, text, commands) => {
    const server = createServer(({ url, headers }, response) => {
      const issuer = `http://${headers.host}`;
      const grants = ['urn:svc:params:oauth:grant-type:fido2'];
      if (url?.startsWith('/.well-known/') === true) {
        response.end(JSON.stringify({ issuer, grant_types_supported: grants }));
      } else {
        response.writeHead(code, {
          'content-type': 'text/html',
          location: 'http://portal.example',
        });
        response.end('<html>Accept our terms</html>');
      }
    });
    const baseUrl = `http://127.0.0.1:${await listenOnLoopback(server)}`;
    home.useServer({ baseUrl });
    home.writeState({ baseUrl }, 'token.json', {
      access_token: 'token',
      scope: 'svc:credentials',
      expires_at: '2100-01-01T00:00:00Z',
      user: { id: 'test' },
    });
    try {
      for (const args of commands) {
        const end = await svc(...args);
        expect([args, end.status, end.stdout]).toEqual([args, 1, '']);
        expect(end.stderr).toContain(`svc: ${text}`);
        expect(end.stderr).toContain('svc doctor');
      }
    } finally {
      await stopServer(server);
    }
  });
});

describe('the programs that svc runs', () => {
  it('are not searched in the current folder, which Windows does by itself', async () => {
    const preload = join(home.path, 'windows.cjs');
    const shown = `process.stdout.write(String(process.env.NoDefaultCurrentDirectoryInExePath))`;
    const windows = "Object.defineProperty(process, 'platform', { value: 'win32' })";
    for (const [lines, value] of [
      [windows, '1'],
      ['', 'undefined'],
    ] as const) {
      writeFileSync(preload, `${lines};\nprocess.on('exit', () => ${shown});`);
      const end = await home.run(['version'], { env: { NODE_OPTIONS: `--require=${preload}` } });
      expect(end.stdout.split('\n').at(-1)).toBe(value);
    }
  });
});

describe('a wrong address', () => {
  const asked = async (answer: RequestListener, ...args: string[]) => {
    const server = createServer(answer);
    const port = await listenOnLoopback(server);
    try {
      const address = `http://127.0.0.1:${port}`;
      return { address, ...(await svc(...args.map((word) => word.replace('ADDRESS', address)))) };
    } finally {
      await stopServer(server);
    }
  };
  const document = (issuer: (host: string | undefined) => string): RequestListener => {
    return ({ headers }, response) => {
      response.end(JSON.stringify({ issuer: issuer(headers.host), grant_types_supported: [] }));
    };
  };
  const status = (code: number, headers = {}): RequestListener => {
    return (_, response) => response.writeHead(code, headers).end('<!doctype html>');
  };

  it.each([
    ['a page', status(200), 'is no server of svc: it shows a page.'],
    ['no such page', status(404), 'is no server of svc: it answers with status 404.'],
    ['another name', status(421), 'A server of svc answers at'],
    ['a fault', status(503), 'has a fault now (status 503).'],
    [
      'another place',
      status(302, { location: 'https://login.example.net/x' }),
      'run: svc use https://login.example.net',
    ],
    [
      'a server with another address',
      document(() => 'https://login.example.net'),
      'run: svc use https://login.example.net',
    ],
    [
      'another product',
      document((host) => `http://${host}`),
      'it is another kind of login server.',
    ],
  ])(
    'is told before a browser opens, where %s answers, and is not stored',
    async (_, answer, text) => {
      for (const args of [
        ['login', '--server', 'ADDRESS'],
        ['use', 'ADDRESS'],
      ]) {
        const end = await asked(answer, ...args);
        expect(end).toMatchObject({ status: 1, stdout: '' });
        expect(end.stderr).toContain(text);
      }
      expect([hasOpened(), existsSync(home.config)]).toEqual([false, false]);
    },
  );

  it('never shows the code of an error of Node', async () => {
    const broken = createSilentServer((socket) => socket.end('220 mail.example ESMTP\r\n'));
    await once(broken.listen(0, '127.0.0.1'), 'listening');
    const { port } = broken.address() as AddressInfo;
    const closing = createSilentServer((socket) => socket.destroy());
    await once(closing.listen(0, '127.0.0.1'), 'listening');
    for (const address of [
      `http://127.0.0.1:${port}`,
      `https://127.0.0.1:${port}`,
      `http://127.0.0.1:${(closing.address() as AddressInfo).port}`,
      'https://localhost:1',
      'https://no-such-host.invalid',
    ]) {
      const { status: ended, stderr } = await svc('use', address);
      expect([address, ended]).toEqual([address, 1]);
      expect(stderr).toMatch(/ cannot be reached: .+\.\n/);
      expect(stderr).not.toMatch(/\b(?:E[A-Z]{3,}|E?AI_|ERR_|UND_|HPE_)\w*\b|the request failed/);
    }
    broken.close();
    closing.close();
  });
});

describe('a machine whose clock is wrong', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@svc-clock.example');
  });
  afterAll(() => app.close());

  /**
   * Runs the command with a clock that is ahead by so many minutes, or behind if the number is
   * negative.
   */
  const runAt = (minutes: number, args: readonly string[], input = '') => {
    const path = join(home.path, 'clock.cjs');
    const shift = `const real = Date.now; Date.now = () => real() + ${minutes} * 60_000;`;
    writeFileSync(path, shift);
    const NODE_OPTIONS = `${home.env['NODE_OPTIONS']} --require=${path}`;
    return home.run(args, { env: { NODE_OPTIONS }, input });
  };

  // kubectl is not in this list, because its proofs carry a nonce of the token endpoint, and then
  // no time is checked (RFC 9449 §8).
  it.each([
    ['ssh', TOOLS.ssh],
    ['aws', TOOLS.aws],
    ['git', TOOLS.git],
  ])('is told so by %s, not that the access was removed', async (_, args) => {
    await home.logIn(app, ada);
    const end = await runAt(-10, args, OF_GIT);
    expect(end.status).toBe(1);
    expect(end.stderr).toContain(
      'The clock of this machine is 10 minutes behind the server, which therefore refuses its requests',
    );
    expect(end.stderr).toContain('timedatectl set-ntp true');
  });

  it('is told so before a browser opens for a login, and by svc keys and svc doctor', async () => {
    const early = await runAt(180, ['login', '--server', app.baseUrl]);
    expect(early).toMatchObject({ status: 1, stdout: '' });
    expect(early.stderr).toContain('is 3 hours ahead of the server');
    expect(hasOpened()).toBe(false);
    await home.logIn(app, ada);
    const keys = await runAt(-20, ['keys']);
    expect(keys).toMatchObject({ status: 1, stderr: expect.stringContaining('20 minutes behind') });
    const doctor = await runAt(-10, ['doctor']);
    expect(doctor.stdout).toMatch(/PROBLEM {2}clock\s+10 minutes behind the server\n/);
  });

  it('is told so with the certificate that its clock takes for a future one', async () => {
    await home.logIn(app, ada);
    const end = await runAt(-3, TOOLS.ssh);
    expect(end).toMatchObject({ status: 0, stdout: '' });
    expect(end.stderr).toMatch(/^svc: The clock of this machine is behind the server, .+\n$/);
    const { stdout } = await runAt(-3, ['ssh', 'status']);
    expect(stdout).toContain('not valid yet: check the clock of this machine');
  });
});

describe('a server that takes connections and never answers', () => {
  const sockets: Socket[] = [];
  const silent = createSilentServer((socket) => sockets.push(socket));
  let hanging: { baseUrl: string };
  beforeAll(async () => {
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    hanging = { baseUrl: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` };
  });
  afterAll(() => {
    sockets.forEach((socket) => socket.destroy());
    silent.close();
  });

  it('holds ssh, aws, git and kubectl for 3 seconds once, and none of them in the minute after', async () => {
    const ends = await Promise.all(
      Object.values(TOOLS).map(async (args) => {
        const own = await SvcHome.create();
        own.writeState(hanging, 'token.json', {
          access_token: 'x',
          scope: '',
          expires_at: '2100-01-01T00:00:00Z',
          user: { id: 'a' },
        });
        own.useServer(hanging);
        const first = await own.run(args, { input: OF_GIT });
        const later = await own.run(args, { input: OF_GIT });
        await own.remove();
        return { first, later };
      }),
    );
    for (const { first, later } of ends) {
      expect([first.status, later.status]).toEqual([1, 1]);
      expect(first.stderr).toContain('cannot be reached: no answer in time');
      expect(later.stderr).toMatch(
        /gave no answer \d+ seconds? ago, and is asked again in \d+ second/,
      );
    }
    expect(sockets).toHaveLength(ends.length);
  });
});
