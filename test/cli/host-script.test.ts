import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import {
  HOST_PROGRAMS,
  JoiningHost,
  ROOT_FOR_ALICE,
  type HostOptions,
} from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';

requires(...HOST_PROGRAMS).describe('/install-host.sh on a host of its own', () => {
  let server: RevocationServer;
  let hosts: JoiningHost[] = [];
  beforeAll(async () => {
    server = await RevocationServer.start();
  });
  afterAll(() => server.stop());
  afterEach(() => {
    for (const host of hosts) host.remove();
    hosts = [];
  });

  const newHost = async (options: HostOptions = {}) => {
    const host = new JoiningHost(await freePort(), options);
    hosts.push(host);
    return host;
  };
  const joined = async (options: HostOptions = {}) => {
    const host = await newHost(options);
    expect(await host.run(server.script, host.joining)).toMatchObject({ status: 0 });
    return host;
  };

  it.each([
    ['a drop-in where sshd_config includes them', true],
    ['a block at the top of sshd_config otherwise', false],
  ])('writes %s, and --remove restores every byte', async (_, dropIns) => {
    const host = await newHost({ dropIns });
    const before = host.tree();
    const first = await host.run(server.script, host.joining);
    expect(first).toMatchObject({ status: 0 });
    expect(await host.test()).toEqual({ status: 0, said: '' });
    expect(existsSync(host.dropIn)).toBe(dropIns);
    expect(readFileSync(host.list).equals(server.list)).toBe(true);
    expect(readFileSync(host.authorities, 'utf8')).toBe(server.authorityLine);
    expect(readFileSync(join(host.etc, 'svc/principals/root'), 'utf8')).toMatch(
      /^#.*\nalice@example\.com\n$/,
    );
    for (const path of ['svc', 'svc/principals']) {
      expect(statSync(join(host.etc, path)).mode & 0o777).toBe(0o755);
    }
    for (const path of ['svc/ca.pub', 'svc/revoked.krl', 'svc/principals/root']) {
      expect(statSync(join(host.etc, path)).mode & 0o777).toBe(0o644);
    }
    const config = readFileSync(host.config, 'utf8');
    if (!dropIns) expect(config).toMatch(/^# BEGIN svc .*\nTrustedUserCAKeys /);

    const leaving = [...host.paths, '--no-reload', '--remove'];
    expect(await host.run(server.script, leaving)).toMatchObject({ status: 0 });
    expect(existsSync(host.list)).toBe(true); // sshd reads the list until it is reloaded
    expect(await host.run(server.script, leaving)).toMatchObject({ status: 0 });
    expect(host.tree()).toEqual(before);
    expect(await host.run(server.script, leaving)).toMatchObject({ status: 0 });
    expect(host.tree()).toEqual(before);
  });

  it.each([true, false])('changes nothing the second time (drop-ins: %s)', async (dropIns) => {
    const host = await joined({ dropIns });
    const before = host.tree({ identity: true });
    const again = await host.run(server.script, host.joining);
    expect(again).toMatchObject({ status: 0, said: expect.stringContaining('nothing to change') });
    expect(host.tree({ identity: true })).toEqual(before);
  });

  it('changes nothing with --dry-run, and says what it would change', async () => {
    const host = await newHost();
    const before = host.tree({ identity: true });
    const dry = await host.run(server.script, [...host.joining, '--dry-run']);
    expect(dry).toMatchObject({ status: 0, said: expect.stringContaining(host.dropIn) });
    expect(host.tree({ identity: true })).toEqual(before);
    await host.run(server.script, host.joining);
    const after = host.tree({ identity: true });
    const leaving = [...host.paths, '--no-reload', '--remove', '--dry-run'];
    expect(await host.run(server.script, leaving)).toMatchObject({ status: 0 });
    expect(host.tree({ identity: true })).toEqual(after);
  });

  it('keeps the principals of other accounts, and takes one away by --remove --account', async () => {
    const host = await joined();
    const principals = join(host.folder, 'list of people');
    writeFileSync(principals, '# people\n\nGrace@Example.com\nalan@example.com\ngrace@example.com');
    const deploy = [...host.paths, '--no-reload', '--schedule', 'cron', '--account', 'deploy'];
    await host.run(server.script, [...deploy, '--principals-file', principals]);
    const folder = join(host.etc, 'svc/principals');
    expect(readdirSync(folder).toSorted()).toEqual(['deploy', 'root']);
    expect(readFileSync(join(folder, 'deploy'), 'utf8')).toMatch(
      /^#.*\ngrace@example\.com\nalan@example\.com\n$/,
    );
    await host.run(server.script, [...deploy, '--remove']);
    expect(readdirSync(folder)).toEqual(['root']);
  });

  it('moves the refresh from systemd to cron and back', async () => {
    const host = await joined();
    const files = () => [
      ...readdirSync(host.units, { recursive: true, encoding: 'utf8' }).toSorted(),
      ...readdirSync(host.cron),
    ];
    const units = [
      'svc-refresh-krl.service',
      'svc-refresh-krl.timer',
      'timers.target.wants',
      'timers.target.wants/svc-refresh-krl.timer',
    ];
    expect(files()).toEqual(units);
    const by = (schedule: string) =>
      host.run(server.script, [...host.joining, '--schedule', schedule]);
    await by('cron');
    expect(files()).toEqual(['svc-refresh-krl']);
    const line = readFileSync(join(host.cron, 'svc-refresh-krl'), 'utf8').split('\n').at(-2);
    expect(line).toMatch(
      /^\* \* \* \* \* root sleep [1-4]?\d; exec \S+svc-refresh-krl http\S+krl /,
    );
    await by('systemd');
    expect(files()).toEqual(units);
  });

  it.each([
    ['a word that sshd does not know', 'Nonsense yes'],
    ['a value that sshd does not take', 'Port no'],
  ])('leaves a broken sshd_config as it was: %s', async (_, line) => {
    for (const options of [[], ['--remove']]) {
      const host = await newHost({ config: [line] });
      const before = host.tree({ identity: true });
      const answer = await host.run(server.script, [
        ...host.joining.slice(0, -4),
        ...options,
        ...(options.length > 0 ? [] : ROOT_FOR_ALICE),
      ]);
      expect(answer).toMatchObject({ status: 1, said: expect.stringMatching(/as it was/) });
      expect(host.tree({ identity: true })).toEqual(before);
    }
  });

  it.each([
    ['TrustedUserCAKeys', 'TrustedUserCAKeys /etc/ssh/vault.pub'],
    ['RevokedKeys in capitals', '  REVOKEDKEYS = /etc/ssh/revoked'],
    ['AuthorizedPrincipalsFile for one user', 'Match User root\n  AuthorizedPrincipalsFile none'],
    [
      'AuthorizedPrincipalsCommand',
      'AuthorizedPrincipalsCommand /bin/true\nAuthorizedPrincipalsCommandUser nobody',
    ],
    ['RevokedKeys within a Match block', 'Match Address 192.0.2.0/24\n\tRevokedKeys none'],
    ['a quoted word', '"TrustedUserCAKeys" "/etc/ssh/vault.pub"'],
  ])('refuses a setting of the administrator: %s', async (_, setting) => {
    for (const place of ['sshd_config', 'sshd_config.d/50-own.conf', 'elsewhere']) {
      const included = place === 'elsewhere';
      const host = await newHost({
        config: included ? ['Include /var/lib/svc-host-*/etc/own/*'] : [],
      });
      if (included) {
        mkdirSync(join(host.etc, 'own'));
        writeFileSync(join(host.etc, 'own/x'), `${setting}\n`);
      } else appendFileSync(join(host.etc, place), `\n${setting}\n`);
      const before = host.tree({ identity: true });
      const answer = await host.run(server.script, host.joining);
      expect(answer).toMatchObject({
        status: 1,
        said: expect.stringMatching(/nothing was changed/i),
      });
      expect(answer.said).toMatch(/line \d+: (trusteduser|revokedkeys|authorizedprincipals)/);
      expect(host.tree({ identity: true })).toEqual(before);
      host.remove();
    }
  });

  it('refuses a block whose end stands before its beginning, and keeps the lines after it', async () => {
    const host = await joined({ dropIns: false });
    const lines = readFileSync(host.config, 'utf8').split('\n');
    const moved = ['# END svc', ...lines.filter((line) => line !== '# END svc')];
    writeFileSync(host.config, moved.join('\n'));
    const before = host.tree({ identity: true });
    for (const options of [host.joining, [...host.paths, '--remove']]) {
      const answer = await host.run(server.script, options);
      expect(answer).toMatchObject({ status: 1, said: expect.stringContaining('by hand') });
    }
    expect(host.tree({ identity: true })).toEqual(before);
  });

  it('refuses a host that has joined another server', async () => {
    const host = await joined();
    const other = await RevocationServer.start();
    const before = host.tree({ identity: true });
    for (const options of [host.joining, [...host.paths, '--remove']]) {
      const answer = await host.run(other.script, options);
      expect(answer).toMatchObject({ status: 1, said: expect.stringContaining(server.baseUrl) });
    }
    expect(host.tree({ identity: true })).toEqual(before);
    other.stop();
  });

  it.each([
    ['a path', ['--account', '../x', '--principal', 'a@example.com']],
    ['a folder above', ['--account', '..', '--principal', 'a@example.com']],
    ['a hidden file', ['--account', '.ssh', '--principal', 'a@example.com']],
    ['an absolute path', ['--account', '/etc/cron.d/x', '--principal', 'a@example.com']],
    ['an option as an account', ['--account', '-x', '--principal', 'a@example.com']],
    ['two lines as an account', ['--account', 'a\nb', '--principal', 'a@example.com']],
    ['no account name', ['--account', '', '--principal', 'a@example.com']],
    ['two principals in one', ['--account', 'root', '--principal', 'a@example.com\nb@example.com']],
    [
      'options before a principal',
      ['--account', 'root', '--principal', 'command="id" a@example.com'],
    ],
    ['a comment', ['--account', 'root', '--principal', '#a@example.com']],
    ['an empty principal', ['--account', 'root', '--principal', '']],
    ['a tab', ['--account', 'root', '--principal', 'a@example.com\tb']],
    ['a wildcard', ['--account', 'root', '--principal', '*@example.com']],
    ['no principal', ['--account', 'root']],
    ['one account without a principal', [...ROOT_FOR_ALICE, '--account', 'deploy']],
    ['a principal before an account', ['--principal', 'a@example.com', ...ROOT_FOR_ALICE]],
    ['no account', []],
    ['an unknown option', [...ROOT_FOR_ALICE, '--acount', 'x']],
    ['an option without its value', [...ROOT_FOR_ALICE, '--sshd']],
    ['a path with a space', [...ROOT_FOR_ALICE, '--sbin', '/opt/a b']],
    ['a path with a percent sign', [...ROOT_FOR_ALICE, '--etc', '/etc/%h']],
    ['a relative path', [...ROOT_FOR_ALICE, '--etc', 'etc']],
    ['a missing file of principals', ['--account', 'root', '--principals-file', '/nowhere']],
  ])('refuses %s, and changes nothing', async (_, options) => {
    const host = await newHost();
    const before = host.tree({ identity: true });
    const answer = await host.run(server.script, [...host.joining.slice(0, -4), ...options]);
    expect(answer).toMatchObject({
      status: 2,
      said: expect.stringContaining('nothing was changed'),
    });
    expect(host.tree({ identity: true })).toEqual(before);
  });

  it('refuses options and a second principal in a file of principals', async () => {
    const host = await newHost();
    for (const line of ['no-pty a@example.com', 'a@example.com b@example.com', 'a@example.com\r']) {
      const file = join(host.folder, 'people');
      writeFileSync(file, `${line}\n`);
      const options = [...host.paths, '--account', 'root', '--principals-file', file];
      expect(await host.run(server.script, options)).toMatchObject({ status: 2 });
    }
  });

  it.each<[string, (host: JoiningHost) => string[]]>([
    ['a list that is no list', () => ((server.answer = (_, answer) => answer.end('<html>')), [])],
    ['no list', () => ((server.answer = (_, answer) => answer.writeHead(500).end()), [])],
    ['an authority with another fingerprint', () => ['--ca-fingerprint', 'SHA256:AAAA']],
    ['a drop-in of another author', (host) => (writeFileSync(host.dropIn, '# mine\n'), [])],
  ])('changes nothing when it meets %s', async (_, meet) => {
    const host = await newHost();
    const options = meet(host);
    const before = host.tree({ identity: true });
    const answer = await host.run(server.script, [...host.joining, ...options]);
    server.answer = undefined;
    expect(answer).toMatchObject({
      status: 1,
      said: expect.stringMatching(/nothing was changed/i),
    });
    expect(host.tree({ identity: true })).toEqual(before);
  });

  it('joins with wget where there is no curl, and refuses the wget of busybox', async () => {
    const host = await newHost();
    const PATH = host.pathWithout('curl');
    expect(await host.run(server.script, host.joining, { environment: { PATH } })).toMatchObject({
      status: 0,
    });
    expect(readFileSync(host.list).equals(server.list)).toBe(true);
    const inode = statSync(host.list).ino;
    expect(await host.refresh({ PATH })).toEqual({ status: 0, said: '' });
    expect(server.requests.at(-1)).toMatch(/^304 /);
    expect(statSync(host.list).ino).toBe(inode);

    const without = { PATH: host.pathWithout('curl', 'wget') };
    const answer = await host.run(server.script, host.joining, { environment: without });
    expect(answer).toMatchObject({ status: 1, said: expect.stringContaining('curl') });
  });

  it('takes two runs at once one after the other', async () => {
    const host = await newHost();
    const runs = await Promise.all([1, 2, 3].map(() => host.run(server.script, host.joining)));
    expect(runs.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(runs.filter(({ said }) => said.includes('nothing to change'))).toHaveLength(2);
    expect(await host.test()).toEqual({ status: 0, said: '' });
  });

  it('does nothing when its download is cut off at any place', async () => {
    const host = await newHost();
    const before = host.tree({ identity: true });
    const { script } = server;
    for (let part = 1; part < 40; part += 1) {
      const cut = script.slice(0, Math.floor(((script.length - 10) * part) / 39));
      await host.run(cut, host.joining);
    }
    expect(host.tree({ identity: true })).toEqual(before);
  });
});
