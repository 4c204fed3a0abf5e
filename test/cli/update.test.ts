import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Maintainers, makeKey } from '../support/command-release.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { runProgram, SVC_BUNDLE, SvcHome } from '../support/svc-command.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const OWN = '0.14.0';
const NEW = '0.15.0';
const NOW = new Date().toISOString();

requires('ssh-keygen').describe('svc update', () => {
  let folder: string;
  let maintainers: Maintainers;
  let home: SvcHome;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    maintainers = await Maintainers.create(join(folder, 'maintainers'));
  });
  afterAll(() => removeDirectory(folder));
  beforeEach(async () => {
    home = await SvcHome.create();
    rmSync(home.program); // which may be a link to the executable of the tests
    writeFileSync(home.program, maintainers.script(OWN), { mode: 0o755 });
  });
  afterEach(() => home.remove());

  let number = 0;
  const fresh = () => join(folder, `release-${(number += 1)}`);
  const update = (...args: string[]) => home.run(['update', ...args]);
  const bin = () => readdirSync(join(home.path, '.local/bin')).toSorted();

  /**
   * Checks that the command has the same bytes as before the update, and is the only file in its
   * folder.
   */
  function expectUntouched() {
    expect(readFileSync(home.program, 'utf8') === maintainers.script(OWN)).toBe(true);
    expect(bin()).toEqual(['svc']);
  }

  describe('from the server in use', () => {
    let app: TestApp;
    beforeAll(async () => {
      const released = maintainers.releaseOf(fresh(), NEW);
      app = await startTestApp({ environment: { SVC_CLIENT_RELEASE_DIR: released } });
    });
    afterAll(() => app.close());
    beforeEach(() => home.useServer(app));

    it('installs a newer, signed version with the mode of the file, and --undo goes back', async () => {
      chmodSync(home.program, 0o750);
      const check = await update('--check');
      expect(check).toMatchObject({ status: 0, stderr: '' });
      expect(check.stdout).toBe(`svc ${NEW} is there, and this is ${OWN}. Run: svc update\n`);
      const end = await update();
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(end.stdout).toContain(`svc ${NEW} is installed in place of ${OWN}.`);
      expect(readFileSync(home.program, 'utf8') === maintainers.script(NEW)).toBe(true);
      expect(statSync(home.program).mode & 0o777).toBe(0o750);
      expect(bin()).toEqual(['svc', 'svc.previous']);
      expect(existsSync(join(home.path, '.rpmdb'))).toBe(false);
      const kept = readFileSync(`${home.program}.previous`, 'utf8');
      expect(kept === maintainers.script(OWN)).toBe(true);
      expect((await update()).stdout).toContain(`svc ${NEW} is the version that`);

      expect(await update('--undo')).toMatchObject({ status: 0, stderr: '' });
      expect(readFileSync(home.program, 'utf8') === maintainers.script(OWN)).toBe(true);
      expect(statSync(home.program).mode & 0o777).toBe(0o750);
      expect(bin()).toEqual(['svc', 'svc.previous']);
      const again = await update('--undo', '--json');
      expect(JSON.parse(again.stdout)).toMatchObject({ version: NEW, before: OWN });
    });

    it('replaces the file behind a symbolic link, and keeps the link', async () => {
      mkdirSync(join(home.path, 'opt'));
      copyFileSync(home.program, join(home.path, 'opt/svc'));
      const link = join(home.path, 'link-to-svc');
      symlinkSync('opt/svc', link);
      const end = await runProgram(process.execPath, [link, 'update'], { env: home.env });
      expect(end).toMatchObject({ status: 0, stderr: '' });
      expect(readFileSync(link, 'utf8') === maintainers.script(NEW)).toBe(true);
      expect(readdirSync(join(home.path, 'opt')).toSorted()).toEqual(['svc', 'svc.previous']);
    });

    it('run twice at once installs it once', async () => {
      const ends = await Promise.all([update('--json'), update('--json')]);
      expect(ends.map(({ status, stderr }) => [status, stderr])).toEqual([
        [0, ''],
        [0, ''],
      ]);
      const updated = ends.map(({ stdout }) => JSON.parse(stdout).updated);
      expect(updated.toSorted()).toEqual([false, true]);
      expect(readFileSync(home.program, 'utf8') === maintainers.script(NEW)).toBe(true);
      const kept = readFileSync(`${home.program}.previous`, 'utf8');
      expect(kept === maintainers.script(OWN)).toBe(true);
      expect(bin()).toEqual(['svc', 'svc.previous']);
    });

    it('removes what an interrupted update left', async () => {
      writeFileSync(join(home.path, '.local/bin/.svc-update-interrupted'), 'half a file');
      writeFileSync(join(home.path, '.local/bin/.svc-update.lock'), '4194304 dead\n');
      expect(await update()).toMatchObject({ status: 0, stderr: '' });
      expect(bin()).toEqual(['svc', 'svc.previous']);
    });
  });

  describe('refuses, and leaves the working command:', () => {
    const release = (how?: Parameters<Maintainers['release']>[2], version = NEW) =>
      maintainers.releaseOf(fresh(), version, how);

    it.each<[string, () => string, string]>([
      [
        'a file with a changed byte',
        () => {
          const changed = release();
          const file = join(changed, `svc-${NEW}.mjs`);
          const bytes = readFileSync(file);
          bytes[bytes.length >> 1]! ^= 1;
          writeFileSync(file, bytes);
          return changed;
        },
        'does not have the SHA-256',
      ],
      [
        'a list with a changed byte',
        () => {
          const changed = release();
          const list = join(changed, 'SHA256SUMS');
          writeFileSync(
            list,
            readFileSync(list, 'utf8').replace(/^./, (hex) => (hex === '0' ? '1' : '0')),
          );
          return changed;
        },
        'its signature is of another list',
      ],
      ['an older version', () => release({}, '0.13.9'), 'older than this one'],
      ['a candidate of the same version', () => release({}, `${OWN}-rc.1`), 'older than this one'],
      [
        'a list that another key signed',
        () => {
          if (!existsSync(join(maintainers.folder, 'other'))) makeKey(maintainers.folder, 'other');
          return release({ key: 'other' });
        },
        'a key that this svc does not know',
      ],
      ['a signature for another purpose', () => release({ namespace: 'git' }), 'another purpose'],
      [
        'two lines for one file',
        () => release({ list: (text) => text + text }),
        'names a file twice',
      ],
      [
        'a name with a path',
        () => release({ list: (text) => text.replace('  svc-', '  ../svc-') }),
        'a line of it is damaged',
      ],
      [
        'files of two versions',
        () => release({ list: (text) => `${text}${'0'.repeat(64)}  svc-0.16.0-linux-x64.gz\n` }),
        'several versions',
      ],
      [
        'a list without svc',
        () => release({ list: () => `${'0'.repeat(64)}  other.tar.gz\n` }),
        'no file of svc',
      ],
      [
        'a huge list',
        () =>
          release({
            list: (text) => text + `${'0'.repeat(64)}  x${'y'.repeat(60)}\n`.repeat(1000),
          }),
        'larger than any',
      ],
      [
        'a script that does not run',
        () => maintainers.release(fresh(), { [`svc-${NEW}.mjs`]: 'process.exit(1);\n' }),
        'does not run on this machine',
      ],
      [
        'an older script under the name of a newer one',
        () => maintainers.release(fresh(), { [`svc-${NEW}.mjs`]: maintainers.script('0.13.0') }),
        'says that it is svc 0.13.0',
      ],
      [
        'a release without a file for this machine',
        () => maintainers.release(fresh(), { [`svc-${NEW}-win-x64.exe`]: 'MZ' }),
        `has no file svc-${NEW}.mjs`,
      ],
      ['a folder without a release', () => folder, 'has no file SHA256SUMS'],
    ])('%s', async (_, make, text) => {
      const end = await update('--from', make());
      expect(end).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(text) });
      expect(end.stderr.trimEnd().split('\n')).toHaveLength(2);
      expectUntouched();
    });

    it('a download that is cut off, a redirect, and a server without a release', async () => {
      const released = release();
      const cutOff: RequestListener = ({ url = '' }, response) => {
        const content = readFileSync(join(released, url.slice(1)));
        response.setHeader('content-length', content.length);
        if (!url.endsWith('.mjs')) response.end(content);
        else response.write(content.subarray(0, 1000), () => response.destroy());
      };
      await withServer(cutOff, async (address) => {
        const end = await update('--from', address);
        expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('was cut off') });
        expectUntouched();
      });
      const redirect: RequestListener = (_, response) =>
        void response.writeHead(302, { location: 'http://mirror.example/SHA256SUMS' }).end();
      await withServer(redirect, async (address) => {
        const end = await update('--from', address);
        expect(end).toMatchObject({
          status: 1,
          stderr: expect.stringContaining('does not follow'),
        });
        expectUntouched();
      });
      const nothing: RequestListener = (_, response) => void response.writeHead(404).end();
      await withServer(nothing, async (address) => {
        const end = await home.run(['update', '--server', address]);
        expect(end).toMatchObject({
          status: 1,
          stderr: expect.stringContaining('offers no update'),
        });
        expectUntouched();
      });
    });

    it('no network', async () => {
      const end = await update('--server', `http://localhost:${await freePort()}`);
      expect(end).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('cannot be reached'),
      });
      expectUntouched();
    });

    it('http beyond this machine, and an address with a user or a query', async () => {
      for (const from of [
        'http://mirror.example/svc',
        'https://a:b@mirror.example/',
        'https://mirror.example/?x=1',
        'ftp://x.example/',
      ]) {
        expect(await update('--from', from)).toMatchObject({ status: 2, stdout: '' });
      }
      expect(await update('--undo', '--check')).toMatchObject({ status: 2, stdout: '' });
      expectUntouched();
    });

    it('--undo without a version before, or with one that does not run', async () => {
      expect(await update('--undo')).toMatchObject({ status: 1, stdout: '' });
      expectUntouched();
      writeFileSync(`${home.program}.previous`, 'process.exit(1);\n', { mode: 0o755 });
      const end = await update('--undo');
      expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('does not run') });
      expect(readFileSync(home.program, 'utf8') === maintainers.script(OWN)).toBe(true);
    });

    it('a file that a package manager owns, or that other accounts can change', async () => {
      const released = release();
      for (const [place, remedy] of [
        ['Cellar/svc/0.14.0/bin', 'brew upgrade svc'],
        ['lib/node_modules/@svc/cli', 'npm install --global'],
      ] as const) {
        const file = join(home.path, place, 'svc');
        mkdirSync(join(home.path, place), { recursive: true });
        copyFileSync(home.program, file);
        const args = [file, 'update', '--from', released];
        const end = await runProgram(process.execPath, args, { env: home.env });
        expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining(remedy) });
        expect(readFileSync(file, 'utf8') === maintainers.script(OWN)).toBe(true);
      }
      chmodSync(home.program, 0o775);
      const end = await update('--from', released);
      expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('chmod go-w') });
      expectUntouched();
    });
  });

  it('without a key of the maintainers installs nothing, and still goes back', async () => {
    copyFileSync(SVC_BUNDLE, home.program);
    chmodSync(home.program, 0o755);
    const end = await update('--from', maintainers.releaseOf(fresh(), '99.0.0'));
    expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('without a key') });
    expect(readFileSync(home.program)).toEqual(readFileSync(SVC_BUNDLE));
    writeFileSync(`${home.program}.previous`, maintainers.script(OWN), { mode: 0o755 });
    expect(await update('--undo')).toMatchObject({ status: 0, stderr: '' });
    await home.run(['--version']);
    expect(readFileSync(home.program, 'utf8') === maintainers.script(OWN)).toBe(true);
  });

  requires('root').describe('of another account', () => {
    it('refuses, also as root', async () => {
      chownSync(home.program, 65_534, 65_534);
      const end = await update('--from', maintainers.releaseOf(fresh(), NEW));
      expect(end).toMatchObject({ status: 1, stderr: expect.stringContaining('another account') });
      expectUntouched();
    });
  });

  describe('a server that is ahead', () => {
    const answers =
      (version: string): RequestListener =>
      (_, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'svc-version': version })
          .end('{"keys":[]}');
    const logIn = (address: string) => {
      const server = { baseUrl: address };
      home.useServer(server);
      home.writeState(server, 'token.json', {
        access_token: 'token',
        scope: 'openid svc:credentials',
        expires_at: NOW.replace(/^\d{4}/, (year) => String(Number(year) + 1)),
        user: { id: 'ada', email: 'ada@example.com' },
      });
    };

    it('by two minor versions is told in one line, once a day, and to people alone', async () => {
      await withServer(answers('0.16.3'), async (address) => {
        logIn(address);
        expect((await home.run(['keys', '--json'])).stderr).toBe('');
        const git = 'protocol=https\nhost=github.com\npath=acme/shop.git\n\n';
        const tool = await home.run(['git', 'credential', 'get'], { input: git });
        expect(tool.stderr).not.toContain('svc update');
        const line = 'svc: The server is svc 0.16.3, and this command is 0.14.0. Run: svc update\n';
        expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: line });
        expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: '' });
        const yesterday = { told_at: Date.now() - 86_400_001 };
        home.writeState({ baseUrl: address }, 'version-notice.json', yesterday);
        expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: line });
      });
    });

    it.each(['0.15.9', '0.14.0', '0.9.0', '0.16', 'x\u001b]0;y', '0.99.0'.repeat(20)])(
      'by less, or with another text, is not told: %j',
      async (version) => {
        const header = version.replace('\u001b', '');
        await withServer(answers(header), async (address) => {
          logIn(address);
          expect(await home.run(['keys'])).toMatchObject({ status: 0, stderr: '' });
        });
      },
    );
  });
});

/** Runs a function with a server on loopback, and stops the server. */
async function withServer(answer: RequestListener, act: (address: string) => Promise<void>) {
  const server: Server = createServer(answer);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  try {
    await act(`http://localhost:${(server.address() as { port: number }).port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  }
}
