import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hostScript } from '../../src/features/install/host-script.js';
import { freePort } from '../support/free-port.js';
import { ending, HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const SHELLS = [['dash'], ['bash', '--posix'], ['busybox', 'sh']];

requires('shellcheck').describe('the scripts for hosts', () => {
  it.each([
    ['/install-host.sh', []],
    ['the refresh program', ['--print', 'program']],
  ])('have no finding of shellcheck: %s', async (_, options) => {
    const script = hostScript('https://login.example.com');
    const text =
      options.length === 0 ? script : (await ending('sh', ['-s', '--', ...options], script)).said;
    expect(await ending('shellcheck', ['-s', 'sh', '-'], text)).toEqual({ status: 0, said: '' });
  });
});

for (const shell of SHELLS) {
  const [name = 'sh'] = shell;
  requires(...HOST_PROGRAMS, name).describe(`/install-host.sh in ${shell.join(' ')}`, () => {
    let server: RevocationServer;
    let host: JoiningHost;
    beforeAll(async () => {
      server = await RevocationServer.start();
      host = new JoiningHost(await freePort());
    });
    afterAll(() => {
      server.stop();
      host.remove();
    });

    it('joins, changes nothing the second time, refreshes the list and leaves', async () => {
      const before = host.tree();
      const run = (...options: string[]) =>
        host.run(server.script, [...host.paths, ...options], { shell });
      const joining = host.joining.slice(host.paths.length);
      expect(await run(...joining)).toMatchObject({ status: 0 });
      const joined = host.tree({ identity: true });
      expect(await run(...joining)).toMatchObject({ status: 0 });
      expect(host.tree({ identity: true })).toEqual(joined);

      server.publish(2, [1_763_683_200_000]);
      const program = join(host.sbin, 'svc-refresh-krl');
      const url = `${server.baseUrl}/v1/credentials/ssh/krl`;
      const refreshing = [...shell.slice(1), program, url, host.list, host.authorities];
      expect(await ending(name, refreshing, '')).toEqual({ status: 0, said: '' });
      expect(readFileSync(host.list).equals(server.list)).toBe(true);
      server.publish(1);
      expect(await ending(name, refreshing, '')).toMatchObject({ status: 1 });

      server.publish(3);
      await run('--remove');
      expect(host.tree()).toEqual(before);
    });

    it('prints nothing about a process that ends while it looks for sshd', async () => {
      const proc = await makeTemporaryDirectory();
      mkdirSync(join(proc, '7')); // a process that has just ended
      mkdirSync(join(proc, '8'));
      writeFileSync(join(proc, '8/cmdline'), '/usr/sbin/sshd\0-f\0/x/sshd_config\0');
      // A test cannot let a process end between two lines of the script. So it replaces `/proc` in
      // the script by a folder of its own.
      const source = readFileSync('src/features/install/host/sshd.sh', 'utf8');
      const script = `config=/x/sshd_config\n${source.replaceAll('/proc/', `${proc}/`)}\nlistening_sshd\n`;
      const end = await ending(name, [...shell.slice(1), '-eu'], script);
      await removeDirectory(proc);
      expect(end).toEqual({ status: 0, said: '8\n' });
    });

    it('refuses an account and a principal that are none', async () => {
      for (const options of [
        ['--account', '../x', '--principal', 'a@example.com'],
        ['--account', 'é', '--principal', 'a@example.com'],
        ['--account', 'root', '--principal', 'a@example.com\nb@example.com'],
        ['--account', 'root', '--principal', 'é@example.com'],
      ]) {
        const answer = await host.run(server.script, [...host.paths, ...options], { shell });
        expect(answer).toMatchObject({ status: 2 });
      }
    });
  });
}

requires(...HOST_PROGRAMS, 'systemd-analyze').describe('the units of a joined host', () => {
  it('pass systemd-analyze verify', async () => {
    const server = await RevocationServer.start();
    const host = new JoiningHost(await freePort());
    expect(await host.run(server.script, host.joining)).toMatchObject({ status: 0 });
    const units = ['service', 'timer'].map((kind) => join(host.units, `svc-refresh-krl.${kind}`));
    expect(await ending('systemd-analyze', ['verify', ...units], '')).toEqual({
      status: 0,
      said: '',
    });
    server.stop();
    host.remove();
  });
});
