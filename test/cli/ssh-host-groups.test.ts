import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readCertificate } from '@svc/openssh';
import { assign, makeHostGroup, touchAgo } from '../support/access-hosts.js';
import { ageTouches } from '../support/access-targets.js';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { freePort } from '../support/free-port.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { count, rows } from '../support/rows.js';
import { runSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { runProgram, SvcHome } from '../support/svc-command.js';
import { answerOf, keepOpened, openedAddress } from '../support/svc-login.js';

/**
 * Runs ssh with the block of `svc setup` against two real sshds, each of which joined a group of
 * hosts.
 */
requires('script', ...SSHD_PROGRAMS, ...HOST_PROGRAMS).describe('ssh to hosts of groups', () => {
  let app: TestApp;
  let ada: EnrolledUser;
  let orgId: string;
  let userId: string;
  let sshds: Record<'prod' | 'dev', Sshd>;
  let home: SvcHome;

  beforeAll(async () => {
    app = await startTestApp();
    ada = await app.enrolled('ada@acme.example');
    const [row] = await rows<{ id: string; org_id: string }>(
      app.dataSource,
      `SELECT id, org_id FROM users WHERE email = 'ada@acme.example'`,
    );
    [userId = '', orgId = ''] = [row?.id, row?.org_id];
    sshds = { prod: await joinHost('prod'), dev: await joinHost('dev') };
  });
  afterAll(async () => {
    await Promise.all([sshds.prod.stop(), sshds.dev.stop()]);
    await app.close();
  });
  beforeEach(async () => {
    await rows(app.dataSource, `DELETE FROM access_targets WHERE kind = 'host_group'`);
    await rows(app.dataSource, 'TRUNCATE access_kept_host_rules');
    await rows(app.dataSource, 'TRUNCATE rate_limits');
    home = await SvcHome.create();
    await home.logIn(app, ada);
    writeUserConfig();
    await home.run(['setup', 'ssh', '--host', '*.acme', '--yes']);
  });
  afterEach(() => home.remove());

  async function joinHost(group: string): Promise<Sshd> {
    const host = new JoiningHost(await freePort());
    const { text } = await app.client().get('/install-host.sh');
    const { status, said } = await host.run(text, [
      ...host.paths,
      ...'--no-reload --schedule none --login root'.split(' '),
      '--organization',
      orgId,
      '--group',
      group,
    ]);
    if (status !== 0) throw new Error(said);
    return runSshd(host);
  }

  const makeGroup = (name: 'prod' | 'dev', more = {}) =>
    makeHostGroup(app.dataSource, {
      orgId,
      name,
      hosts: [`*.${name}.acme`],
      logins: ['root'],
      ...more,
    });
  const configFile = () => join(home.path, '.ssh/config');
  const writeUserConfig = () => {
    mkdirSync(join(home.path, '.ssh'), { mode: 0o700 });
    const lines = Object.entries(sshds).flatMap(([name, { port }]) => [
      `Host *.${name}.acme`,
      '  HostName 127.0.0.1',
      `  Port ${port}`,
    ]);
    const all = [
      ...lines,
      'Host *',
      '  User root',
      '  StrictHostKeyChecking no',
      '  UserKnownHostsFile /dev/null',
      '  LogLevel ERROR',
      '  IdentityAgent none',
      '  BatchMode yes',
    ];
    writeFileSync(configFile(), `${all.join('\n')}\n`, { mode: 0o600 });
  };
  const ssh = (host: string) =>
    runProgram('ssh', ['-F', configFile(), host, 'echo', 'in'], { env: home.env });
  const check = (host: string) => home.run(['ssh', 'check', host]);
  const issued = () => count(app.dataSource, 'ssh_certificates');
  const isIn = { status: 0, stdout: 'in\n', stderr: '' };
  const isSilent = { status: 0, stdout: '', stderr: '' };
  const logins = (n: number) => ['root', ...Array.from({ length: n }, (_, i) => `u${i}`)];
  const [host, file] = ['web1.prod.acme', 'web1.prod.acme.pub'];
  /** The line for a host of which one group demands a touch and another one does not. */
  const touchLine = `svc: Some logins of ${host} need a touch of your security key first; run: svc ssh cert ${host}`;
  const prodAdmin = () => {
    const hosts = ['*.prod.acme'];
    return { orgId, name: 'prod-admin', hosts, logins: ['admin'] };
  };
  const stored = (...names: string[]) =>
    readCertificate(readFileSync(home.state(app, 'ssh', ...names), 'utf8'));

  it('logs in to both groups with one certificate, and says nothing', async () => {
    await makeGroup('prod');
    await makeGroup('dev');
    const before = await issued();
    expect(await Promise.all([ssh('web1.prod.acme'), ssh('db.dev.acme')])).toEqual([isIn, isIn]);
    expect((await issued()) - before).toBe(1);
    expect(existsSync(home.state(app, 'ssh/hosts'))).toBe(false);
  });

  it('logs in to two groups at once if one certificate cannot carry both', async () => {
    await makeGroup('prod', { logins: logins(150) });
    await makeGroup('dev', { logins: logins(150) });
    const before = await issued();
    const hosts = ['web1.prod.acme', 'db.dev.acme'];
    expect(await Promise.all(hosts.map(ssh))).toEqual([isIn, isIn]);
    expect(await Promise.all(hosts.map(ssh))).toEqual([isIn, isIn]);
    expect((await issued()) - before).toBe(2);
    // web2 is in the same groups as web1, so the command uses the stored certificate for it.
    expect(await ssh('web2.prod.acme')).toEqual(isIn);
    expect(readdirSync(home.state(app, 'ssh/sets'))).toHaveLength(2);
    expect(readdirSync(home.state(app, 'ssh/hosts')).toSorted()).toEqual(
      ['db.dev.acme.pub', 'web1.prod.acme.pub', 'web2.prod.acme.pub'].toSorted(),
    );
  });

  it('svc setup ssh --principal ends the use of a certificate with other names', async () => {
    await makeGroup('prod');
    await makeGroup('dev');
    expect(await check('web1.prod.acme')).toEqual(isSilent);
    const ofProd = `root@prod:${orgId}`;
    expect(stored('id-cert.pub')?.principals).toContain(`root@dev:${orgId}`);
    const setup = ['setup', 'ssh', '--principal', ofProd, '--yes'];
    const { stdout } = await home.run(setup);
    expect(stdout).toContain(`the next login gets one for ${ofProd}`);
    expect(await check('web1.prod.acme')).toEqual(isSilent);
    expect(stored('id-cert.pub')?.principals).toEqual([ofProd]);
    expect((await home.run(setup)).stdout).toMatch(/^Nothing to change\.$/m);
  });

  it('svc ssh cert HOST --renew renews and prints the certificate of that host', async () => {
    await makeGroup('prod', { logins: logins(150) });
    await makeGroup('dev', { logins: logins(150) });
    const serialOf = async (...args: readonly string[]) => {
      const end = await home.run(['ssh', 'cert', 'web1.prod.acme', '--json', ...args]);
      expect(end).toMatchObject({ status: 0, stderr: '' });
      return (JSON.parse(end.stdout) as { serial: string }).serial;
    };
    const first = await serialOf();
    expect(await serialOf()).toBe(first);
    const second = await serialOf('--renew');
    expect(second).not.toBe(first);
    expect(await serialOf()).toBe(second);
  });

  it('says in one line that the person has no access, and which group of a host counts', async () => {
    const prod = await makeGroup('prod', { access: 'assigned' });
    await makeGroup('dev');
    const line = `svc: You have no access to web1.prod.acme. Ask an admin of your organization, or see ${app.baseUrl}/account/reach.\n`;
    expect(await check('web1.prod.acme')).toEqual({ status: 4, stdout: '', stderr: line });
    expect(await ssh('web1.prod.acme')).toMatchObject({ status: 255 });
    const own = await home.run(['ssh', '-F', configFile(), 'root@web1.prod.acme', 'echo', 'in']);
    expect([own.status, own.stdout, own.stderr.split('\n')[0]]).toEqual([
      4,
      '',
      'svc: You have no access to web1.prod.acme.',
    ]);
    expect(await ssh('db.dev.acme')).toEqual(isIn);
    const open = ['ssh', '-F', configFile(), '-oCompression=no', 'db.dev.acme', 'echo', 'in'];
    expect(await home.run(open)).toEqual(isIn);
    await assign(app.dataSource, prod, { userId });
    expect(await ssh('web1.prod.acme')).toEqual(isIn);
  });

  it('asks once about a host of no group, and uses the plain principals there', async () => {
    await makeGroup('prod');
    expect(await check('old.acme')).toEqual(isSilent);
    const before = await issued();
    expect(await check('old.acme')).toEqual(isSilent);
    expect(await issued()).toBe(before);
    expect(stored('hosts', 'old.acme.pub').principals).toEqual(['ada@acme.example']);
  });

  it('leaves an organization without groups as it was', async () => {
    const before = await issued();
    expect(await check('web1.prod.acme')).toEqual(isSilent);
    expect(await check('db.dev.acme')).toEqual(isSilent);
    expect((await issued()) - before).toBe(1);
    expect(existsSync(home.state(app, 'ssh/host-groups.json'))).toBe(false);
  });

  it('says which touch a condition demands, and logs in after it', async () => {
    await makeGroup('prod', { touchWithinSeconds: 900 });
    const sessions = await rows<{ id: string }>(app.dataSource, 'SELECT id FROM sessions');
    const touch = (seconds: number) =>
      Promise.all(sessions.map(({ id }) => touchAgo(app.dataSource, id, seconds)));
    await touch(901);
    expect(await check('web1.prod.acme')).toEqual({
      status: 3,
      stdout: '',
      stderr:
        'svc: This needs a touch of your security key in the last 15 minutes; run: svc ssh cert web1.prod.acme\n',
    });
    expect(await check('old.acme')).toEqual(isSilent);
    await touch(600);
    expect(await ssh('web1.prod.acme')).toEqual(isIn);
    const certificate = stored('hosts', 'web1.prod.acme.pub');
    expect(certificate.principals).toEqual(['ada@acme.example', `root@prod:${orgId}`]);
    expect(certificate.validBefore - Date.now()).toBeLessThanOrEqual(300_000);
  });

  it('says that some logins of a host need a touch, and svc ssh cert HOST asks for it', async () => {
    await makeGroup('prod', { logins: ['deploy'] });
    const hosts = ['*.prod.acme'];
    const root = { orgId, name: 'prod-root', hosts, logins: ['root'] };
    await makeHostGroup(app.dataSource, { ...root, touchWithinSeconds: 900 });
    const principals = [`deploy@prod:${orgId}`, `root@prod-root:${orgId}`];
    await ageTouches(app, 'ada@acme.example', 901);
    expect(await check(host)).toEqual({ status: 0, stdout: '', stderr: `${touchLine}\n` });
    expect(stored('hosts', file).principals).toEqual(['ada@acme.example', principals[0]]);
    // Programs are told only about a new certificate, and a person at a terminal always.
    expect(await check(host)).toEqual(isSilent);
    const inTerminal = await home.runInTerminal(['ssh', 'check', host]);
    expect(inTerminal).toMatchObject({ status: 0, stdout: `${touchLine}\r\n` });
    const untouched = await home.run(['ssh', 'cert', host]);
    expect(untouched).toMatchObject({ status: 0, stderr: `${touchLine}\n` });

    keepOpened(home);
    const running = home.runInTerminal(['ssh', 'cert', host], { started: () => {} });
    await fetch(await answerOf(app, ada, await openedAddress(home)));
    const touched = await running;
    expect(touched.status).toBe(0);
    for (const principal of principals) expect(touched.stdout).toContain(principal);
    expect(stored('id-cert.pub').principals).toEqual(['ada@acme.example', ...principals]);
    expect(await check(host)).toEqual(isSilent);
  });

  it('asks for no touch if none of the login fits, or the names are chosen', async () => {
    await makeGroup('prod');
    await makeHostGroup(app.dataSource, { ...prodAdmin(), models: 'fips-only' });
    const cert = () => home.runInTerminal(['ssh', 'cert', host]);
    const ofFips = await cert();
    expect([ofFips.status, ofFips.stdout]).toEqual([0, expect.not.stringContaining('logins')]);
    expect(stored('hosts', file).principals).toHaveLength(2);
    expect(await ssh(host)).toEqual(isIn);
    const toTouch = 'UPDATE access_targets SET models = NULL, touch_within_seconds = 900';
    await rows(app.dataSource, `${toTouch} WHERE name = 'prod-admin'`);
    await ageTouches(app, 'ada@acme.example', 901);
    await home.run(['setup', 'ssh', '--principal', 'ada@acme.example', '--yes']);
    const chosen = await cert();
    expect([chosen.status, chosen.stdout]).toEqual([0, expect.not.stringContaining('logins')]);
  });

  it('prints the certificate if the touch is refused, or was one of another key', async () => {
    await makeGroup('prod');
    const admin = { ...prodAdmin(), touchWithinSeconds: 900 };
    await makeHostGroup(app.dataSource, { ...admin, models: 'fips-only' });
    await rows(
      app.dataSource,
      `UPDATE sessions SET touches = touches || jsonb_build_object('fips', jsonb_build_object(
         'at', extract(epoch FROM now()) - 901, 'uv', NULL, 'fips', true))`,
    );
    keepOpened(home);
    const cert = () => home.runInTerminal(['ssh', 'cert', host], { started: () => {} });
    const refused = cert();
    const { searchParams: asked } = await openedAddress(home);
    const [back, state] = [asked.get('redirect_uri') ?? '', asked.get('state') ?? ''];
    const denied = { error: 'access_denied', state, iss: app.baseUrl };
    await fetch(`${back}?${new URLSearchParams(denied).toString()}`);
    expect(await refused).toMatchObject({ status: 0 });
    expect((await refused).stdout).toContain(`root@prod:${orgId}`);
    const touched = cert();
    await fetch(await answerOf(app, ada, await openedAddress(home)));
    expect((await touched).stdout).toContain(`Some logins of ${host} still need a touch`);
    expect(await touched).toMatchObject({ status: 0 });
    const inJson = await home.run(['ssh', 'cert', host, '--json']);
    expect(JSON.parse(inJson.stdout)).toMatchObject({ is_valid: true, touch_needed: true });
  });

  it('asks the server again before it asks for a touch', async () => {
    await makeGroup('prod');
    await makeHostGroup(app.dataSource, { ...prodAdmin(), touchWithinSeconds: 900 });
    await ageTouches(app, 'ada@acme.example', 901);
    expect((await check(host)).stderr).toContain('need a touch');
    await rows(app.dataSource, 'UPDATE access_targets SET touch_within_seconds = NULL');
    const ended = await home.runInTerminal(['ssh', 'cert', host]);
    expect([ended.status, ended.stdout]).toEqual([0, expect.not.stringContaining('logins')]);
    expect(ended.stdout).toContain(`admin@prod-admin:${orgId}`);
  });

  it('svc ssh HOST says it, too, if no block of the setup runs the check', async () => {
    await makeGroup('prod');
    await makeHostGroup(app.dataSource, { ...prodAdmin(), touchWithinSeconds: 900 });
    await ageTouches(app, 'ada@acme.example', 901);
    const plain = join(home.path, 'plain-config');
    writeFileSync(plain, readFileSync(configFile(), 'utf8').split('# >>> svc')[0] ?? '');
    const end = await home.run(['ssh', '-F', plain, host, 'echo', 'in']);
    expect(end).toEqual({ status: 0, stdout: 'in\n', stderr: `${touchLine}\n` });
  });

  it('deletes the certificates of hosts at a new login, and with the setup', async () => {
    await makeGroup('prod');
    await check('old.acme');
    await home.logIn(app, ada);
    expect(await check('old.acme')).toEqual(isSilent);
    await home.run(['setup', 'ssh', '--remove', '--yes']);
    expect(existsSync(home.state(app, 'ssh'))).toBe(false);
  });

  it('writes no file outside of its folder for a strange name of a host', async () => {
    await makeGroup('prod');
    for (const name of ['../../x', '..', 'a/b', '-oProxyCommand=x', 'a b']) {
      await home.run(['ssh', 'check', name]);
    }
    expect(existsSync(home.state(app, 'ssh/hosts'))).toBe(false);
  });
});
