import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import { ending, HOST_PROGRAMS, JoiningHost, ROOT_FOR_ALICE } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';
import { runSshd, type Sshd } from '../support/sshd.js';

/**
 * Runs in a mount namespace, and binds the folders of a host to their usual paths. On request it
 * adds the folder by which a program recognizes a running systemd.
 */
const ENTER_HOST = `
for pair in etc:/etc/ssh units:/etc/systemd/system sbin:/usr/local/sbin cron:/etc/cron.d; do
  mount --bind "$FOLDER/\${pair%%:*}" "\${pair#*:}" || exit 99
done
mount -t tmpfs none /run/systemd || exit 99
[ -z "$SYSTEMD" ] || mkdir /run/systemd/system
exec sh -s -- "$@"`;

/**
 * Stands for systemctl, which needs a running systemd. It logs its arguments, and remembers which
 * units are active.
 */
const SYSTEMCTL = `#!/bin/sh
echo "$*" >>"$FOLDER/systemctl.log"
case "$*" in
  'restart svc-refresh-krl.timer') : >"$FOLDER/active" ;;
  'is-active --quiet svc-refresh-krl.timer') [ -e "$FOLDER/active" ] ;;
  'is-active --quiet ssh.service') [ ! -e "$FOLDER/kill" ] || kill -9 0 ;;
  is-active*) exit 3 ;;
esac
`;

requires(...HOST_PROGRAMS, 'mounts').describe('/install-host.sh at the usual paths', () => {
  let server: RevocationServer;
  let host: JoiningHost;
  beforeAll(async () => {
    server = await RevocationServer.start();
    mkdirSync('/run/systemd', { recursive: true });
  });
  afterAll(() => server.stop());
  afterEach(() => host.remove());

  const newHost = async () => {
    host = new JoiningHost(await freePort(), { dropIns: false });
    mkdirSync(join(host.etc, 'sshd_config.d'));
    const config = readFileSync(host.config, 'utf8');
    writeFileSync(host.config, `Include /etc/ssh/sshd_config.d/*.conf\n${config}`);
    mkdirSync(join(host.folder, 'bin'));
    writeFileSync(join(host.folder, 'bin/systemctl'), SYSTEMCTL, { mode: 0o755 });
  };
  const run = (systemd: string, ...options: string[]) => {
    const PATH = `${join(host.folder, 'bin')}:/usr/sbin:/usr/bin:/sbin:/bin`;
    const environment = { PATH, FOLDER: host.folder, SYSTEMD: systemd };
    const words = ['--mount', '--propagation', 'private', 'sh', '-c', ENTER_HOST, 'sh', ...options];
    return ending('unshare', words, server.script, environment);
  };
  const calls = () => {
    const log = join(host.folder, 'systemctl.log');
    const lines = readFileSync(log, 'utf8').trim().split('\n');
    writeFileSync(log, '');
    return lines;
  };

  it('starts the timer and then reloads the unit of sshd, where systemd runs', async () => {
    await newHost();
    expect(await run('yes', ...ROOT_FOR_ALICE)).toMatchObject({ status: 0 });
    expect(readFileSync(host.dropIn, 'utf8')).toContain('RevokedKeys /etc/ssh/svc/revoked.krl\n');
    expect(readdirSync(host.units).toSorted()).toContain('svc-refresh-krl.timer');
    expect(readdirSync(host.cron)).toEqual([]);
    expect(readFileSync(join(host.units, 'svc-refresh-krl.service'), 'utf8')).toContain(
      `ExecStart=/usr/local/sbin/svc-refresh-krl ${server.baseUrl}/v1/credentials/ssh/krl /etc/ssh/svc/revoked.krl /etc/ssh/svc/ca.pub\n`,
    );
    // By default the host fetches the list each minute, with a random delay of at most 20 seconds.
    const timer = readFileSync(join(host.units, 'svc-refresh-krl.timer'), 'utf8');
    expect(timer).toContain('OnCalendar=minutely\nRandomizedDelaySec=20s\nAccuracySec=1s\n');
    expect(calls()).toEqual([
      'daemon-reload',
      'restart svc-refresh-krl.timer',
      'is-active --quiet ssh.service',
      'reload ssh.service',
    ]);
    await run('yes', ...ROOT_FOR_ALICE);
    expect(calls()).toEqual(['is-active --quiet svc-refresh-krl.timer']);
    expect(await run('yes', '--remove')).toMatchObject({ status: 0 });
    expect(calls()).toEqual([
      'is-active --quiet ssh.service',
      'reload ssh.service',
      'stop svc-refresh-krl.timer svc-refresh-krl.service',
      'daemon-reload',
    ]);
    expect(readdirSync(host.etc)).not.toContain('svc');
  });

  it('reloads sshd in the next run where one is killed before it', async () => {
    await newHost();
    writeFileSync(join(host.folder, 'kill'), '');
    expect(await run('yes', ...ROOT_FOR_ALICE)).toMatchObject({ status: -1 });
    expect(readdirSync(join(host.etc, 'sshd_config.d'))).toEqual(['00-svc.conf']);
    rmSync(join(host.folder, 'kill'));
    calls();
    expect(await run('yes', ...ROOT_FOR_ALICE)).toMatchObject({ status: 0 });
    expect(calls()).toContain('reload ssh.service');
    await run('yes', ...ROOT_FOR_ALICE);
    expect(calls()).not.toContain('reload ssh.service');
  });

  it('writes a line for cron where systemd does not run', async () => {
    await newHost();
    expect(await run('', ...ROOT_FOR_ALICE)).toMatchObject({ status: 0 });
    expect(readdirSync(host.units)).toEqual([]);
    const file = readFileSync(join(host.cron, 'svc-refresh-krl'), 'utf8');
    const line = /^\* \* \* \* \* root sleep (\d+); exec \/usr\/local\/sbin\/svc-refresh-krl /m;
    expect(file).toMatch(line);
    expect(Number(line.exec(file)?.[1])).toBeLessThan(50);
    expect(await run('', '--remove')).toMatchObject({ status: 0 });
    expect(readdirSync(host.cron)).toEqual([]);
  });
});

requires(...HOST_PROGRAMS, 'ssh').describe('an sshd without a PidFile', () => {
  let sshd: Sshd | undefined;
  afterEach(() => sshd?.stop());

  it('is found by its command line, and keeps its list until it is reloaded', async () => {
    const server = await RevocationServer.start();
    const host = new JoiningHost(await freePort());
    const config = readFileSync(host.config, 'utf8').replace(/^PidFile .*$/m, 'PidFile none');
    writeFileSync(host.config, config);
    sshd = await runSshd({ folder: host.folder, port: host.port, config: host.config });
    const found = sshd;
    const starts = () => found.lines.filter((line) => line.startsWith('Server listening')).length;
    for (const options of [
      host.joining.filter((word) => word !== '--no-reload'),
      [...host.paths, '--remove'],
    ]) {
      const before = starts();
      const { status, said } = await host.run(server.script, options);
      expect({ status, said }).toMatchObject({
        status: 0,
        said: expect.stringContaining('reloaded sshd'),
      });
      await expect.poll(starts).toBe(before + 1);
    }
    server.stop();
  });
});
