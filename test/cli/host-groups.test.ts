import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import { ending, HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';

const ORGANIZATION = '8f14e45f-ceea-467f-a8f5-2b0c3c0f2a11';

requires(...HOST_PROGRAMS).describe('/install-host.sh with groups of hosts', () => {
  let server: RevocationServer;
  let host: JoiningHost;
  beforeAll(async () => {
    server = await RevocationServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(async () => {
    host = new JoiningHost(await freePort());
  });
  afterEach(() => host.remove());

  const groups = (names = 'prod', logins = 'deploy') => [
    '--organization',
    ORGANIZATION,
    '--group',
    names,
    '--login',
    logins,
  ];
  const run = (...options: string[]) =>
    host.run(server.script, [...host.paths, '--no-reload', '--schedule', 'systemd', ...options]);
  const principals = (login: string) =>
    readFileSync(join(host.etc, 'svc/principals', login), 'utf8')
      .split('\n')
      .slice(1, -1);

  it('lets in only the principals of the groups, changes nothing again, and leaves no byte', async () => {
    const before = host.tree();
    const options = groups('prod,dev', 'deploy,ubuntu');
    expect(await run(...options)).toMatchObject({ status: 0 });
    for (const login of ['deploy', 'ubuntu']) {
      expect(principals(login)).toEqual([
        `${login}@prod:${ORGANIZATION}`,
        `${login}@dev:${ORGANIZATION}`,
      ]);
    }
    expect(await host.test()).toEqual({ status: 0, said: '' });
    const joined = host.tree({ identity: true });
    expect(await run(...options)).toMatchObject({ said: expect.stringContaining('nothing to') });
    expect(host.tree({ identity: true })).toEqual(joined);
    await run('--remove');
    await run('--remove'); // the first run keeps the list, because sshd was not reloaded
    expect(host.tree()).toEqual(before);
  });

  it('replaces the addresses of an account that joins a group, and keeps other accounts', async () => {
    const people = ['--principal', 'alice@example.com'];
    await run('--account', 'root', ...people, '--account', 'deploy', ...people);
    await run(...groups());
    expect(principals('deploy')).toEqual([`deploy@prod:${ORGANIZATION}`]);
    expect(principals('root')).toEqual(['alice@example.com']);
    expect(await run('--remove', '--login', 'deploy')).toMatchObject({ status: 0 });
    expect(readdirSync(join(host.etc, 'svc/principals'))).toEqual(['root']);
  });

  it.each([
    ['an address beside the groups', ['--account', 'deploy', '--principal', 'a@b.c', ...groups()]],
    ['groups without logins', groups().slice(0, 4)],
    ['logins without groups', groups().slice(4)],
    ['an id that is none', ['--organization', `${ORGANIZATION}0`, ...groups().slice(2)]],
    ['a second line in the id', ['--organization', `${ORGANIZATION}\nx`, ...groups().slice(2)]],
    ['a second line in a group', groups('prod\nroot@x')],
    ['a command in a group', groups('prod,$(id)')],
    ['options before a principal', groups('no-pty root')],
    ['a pattern as a group', groups('*')],
    ['a path as a login', groups('prod', '../root')],
    ['a login that is an option', groups('prod', '-root')],
    ['a group in upper case', groups('Prod')],
    ['a group of 33 characters', groups('a'.repeat(33))],
    ['an empty name in a list', groups('prod,')],
    ['an interval of nothing', [...groups(), '--interval', '0']],
    ['an interval with a command', [...groups(), '--interval', '2;id']],
  ])('refuses %s, and changes nothing', async (_, options) => {
    const before = host.tree({ identity: true });
    expect(await run(...options)).toMatchObject({
      status: 2,
      said: expect.stringContaining('nothing was changed'),
    });
    expect(host.tree({ identity: true })).toEqual(before);
  });

  it('fetches the list at the interval, by systemd and by cron', async () => {
    const timer = () => readFileSync(join(host.units, 'svc-refresh-krl.timer'), 'utf8');
    await run(...groups());
    expect(timer()).toMatch(/\nOnCalendar=minutely\nRandomizedDelaySec=20s\n/);
    await run(...groups(), '--interval', '2');
    expect(timer()).toMatch(/\nOnUnitInactiveSec=2s\nAccuracySec=100ms\n/);
    expect(timer()).not.toMatch(/OnCalendar|RandomizedDelaySec/);
    await run(...groups(), '--interval', '2', '--schedule', 'cron');
    const cron = readFileSync(join(host.cron, 'svc-refresh-krl'), 'utf8');
    expect(cron.split('\n').at(-2)).toContain(`${host.list} ${host.authorities}; sleep 2; `);
    expect(existsSync(join(host.units, 'svc-refresh-krl.timer'))).toBe(false);
  });

  it('asks by cron once a minute if each answer takes that long, so that no commands pile up', async () => {
    await run(...groups(), '--interval', '2', '--schedule', 'cron');
    const line = readFileSync(join(host.cron, 'svc-refresh-krl'), 'utf8').split('\n').at(-2) ?? '';
    expect(line).not.toContain('%');
    const clock = join(host.folder, 'clock');
    const replace = (path: string, script: string) =>
      writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const programs = join(host.folder, 'programs');
    mkdirSync(programs);
    replace(join(programs, 'sleep'), 'exit 0');
    replace(join(programs, 'cut'), `wc -l <'${clock}' | awk '{ print 1000 + 60 * $1 }'`);
    replace(join(host.sbin, 'svc-refresh-krl'), `echo asked >>'${clock}'`);
    writeFileSync(clock, '');
    const command = `PATH='${programs}':$PATH; ${line.replace('* * * * * root ', '')}`;
    expect(await ending('/bin/sh', ['-c', command], '')).toEqual({ status: 0, said: '' });
    expect(readFileSync(clock, 'utf8')).toBe('asked\n');
  });
});
