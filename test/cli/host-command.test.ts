import { createHash } from 'node:crypto';
import { chownSync, existsSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { freePort } from '../support/free-port.js';
import { HOST_PROGRAMS, JoiningHost, ROOT_FOR_ALICE } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';
import { commandWords, runProgram, SvcHome } from '../support/svc-command.js';
import '../support/full-scale-only.js';

describe('svc host', () => {
  let home: SvcHome;
  beforeEach(async () => {
    home = await SvcHome.create();
  });
  afterEach(() => home.remove());

  requires(...HOST_PROGRAMS).describe('as root', () => {
    let app: TestApp;
    let host: JoiningHost;
    beforeAll(async () => {
      app = await startTestApp();
    });
    afterAll(() => app.close());
    beforeEach(async () => {
      home.useServer(app);
      host = new JoiningHost(await freePort());
      // the rate limit counts all requests of the script for one IP address
      await app.dataSource.query('TRUNCATE rate_limits');
    });
    afterEach(() => host.remove());

    it('joins, shows and leaves by the script of the server, and shows its checksum', async () => {
      const before = host.tree();
      const script = (await app.client().get('/install-host.sh')).text;
      const checksum = createHash('sha256').update(script).digest('hex');
      const schedule = ['--schedule', 'systemd'];
      const joined = await home.run([
        'host',
        'setup',
        ...host.paths,
        ...schedule,
        ...ROOT_FOR_ALICE,
      ]);
      expect(joined).toMatchObject({ status: 0, stderr: expect.stringContaining(checksum) });
      expect(joined.stdout).toContain(`this host has joined ${app.baseUrl}`);
      expect(readFileSync(host.dropIn, 'utf8')).toContain(`RevokedKeys ${host.list}\n`);

      const shown = await home.run(['host', 'status', '--json', ...host.paths]);
      expect(shown.status).toBe(0);
      expect(JSON.parse(shown.stdout)).toMatchObject({
        sha256: checksum,
        exit_status: 0,
        output: expect.arrayContaining([
          expect.stringContaining('account root: alice@example.com'),
        ]),
      });

      expect(await home.run(['host', 'remove', ...host.paths])).toMatchObject({ status: 0 });
      expect(host.tree()).toEqual(before);
      expect(await home.run(['host', 'status', ...host.paths])).toMatchObject({ status: 1 });
    });

    it('ends with the exit status of the script', async () => {
      const wrong = await home.run(['host', 'setup', ...host.paths, '--account', '../x']);
      expect(wrong).toMatchObject({
        status: 2,
        stderr: expect.stringContaining('nothing was changed'),
      });
      const missing = await home.run([
        'host',
        'setup',
        '--sshd-config',
        '/nowhere',
        ...ROOT_FOR_ALICE,
      ]);
      expect(missing).toMatchObject({ status: 1 });
    });
  });

  it('refuses other words, and needs a server', async () => {
    for (const words of [[], ['join'], ['toString'], ['--account', 'root']]) {
      expect(await home.run(['host', ...words])).toMatchObject({ status: 2, stdout: '' });
    }
    expect(await home.run(['host', 'status'])).toMatchObject({ status: 3 });
  });

  it('does not run a page, an error or a script that was cut off', async () => {
    const server = await RevocationServer.start();
    home.useServer(server);
    const whole = server.script;
    for (const script of ['<html>Please sign in</html>', '', whole.slice(0, -20)]) {
      Object.defineProperty(server, 'script', { value: script, configurable: true });
      expect(await home.run(['host', 'status'])).toMatchObject({ status: 1, stdout: '' });
    }
    server.stop();
    expect(await home.run(['host', 'status'])).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('cannot be reached'),
    });
  });

  requires('root', 'setpriv', 'reachable').describe('as another user', () => {
    it('prints the line with sudo that does the same, and runs nothing', async () => {
      const server = await RevocationServer.start();
      home.useServer(server);
      await runProgram('chown', ['-R', '65534:65534', home.path]);
      chownSync(home.path, 65_534, 65_534);
      const user = ['--reuid', '65534', '--regid', '65534', '--clear-groups'];
      const words = ['host', 'setup', '--account', 'root', '--principal', "o'neil@example.com"];
      const end = await runProgram('setpriv', [...user, ...commandWords(home.program), ...words], {
        env: home.env,
      });
      expect(end).toMatchObject({ status: 1, stdout: '' });
      expect(end.stderr).toContain(
        `curl -fsS ${server.baseUrl}/install-host.sh | sudo sh -s -- --account root --principal 'o'\\''neil@example.com'`,
      );
      expect(existsSync('/etc/ssh/svc')).toBe(false);
      server.stop();
    });
  });
});
