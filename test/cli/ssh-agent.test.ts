import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { requires } from '../support/programs.js';
import { startAgent, type RunningAgent } from '../support/running-agent.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from '../support/sshd.js';
import { runProgram, SvcHome } from '../support/svc-command.js';
import '../support/full-scale-only.js';

const PAIR = ['ED25519', 'ED25519-CERT'];
const OPTIONS = [
  ['-F', 'none'],
  ['-o', 'BatchMode=yes'],
  ['-o', 'StrictHostKeyChecking=no'],
  ['-o', 'UserKnownHostsFile=/dev/null'],
  ['-o', 'LogLevel=ERROR'],
].flat();

requires(...SSHD_PROGRAMS, 'ssh-agent', 'ssh-add').describe('svc ssh', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let sshds: Record<'hop' | 'target', Sshd>;
  let user: { readonly id: string; readonly user: EnrolledUser };
  let home: SvcHome;
  let agent: RunningAgent;
  let people = 0;

  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'acme.example');
    const authorities = [(await app.client().get('/v1/credentials/ssh/ca')).text.trim()];
    const principals = Array.from({ length: 30 }, (_, n) => `ada-${n}@acme.example`);
    const start = () => startSshd({ authorities, principals });
    sshds = { hop: await start(), target: await start() };
  });
  afterAll(async () => {
    await Promise.all([sshds.hop.stop(), sshds.target.stop()]);
    await app.close();
  });
  beforeEach(async () => {
    people += 1;
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
    const userName = `ada-${people}@acme.example`;
    const { json } = await organization.scim('POST', '/Users', { schemas, userName });
    user = { id: String(json.id), user: await app.enrolled(userName) };
    home = await SvcHome.create();
    await home.logIn(app, user.user);
    agent = await startAgent(home.path);
  });
  afterEach(async () => {
    await agent.stop();
    await home.remove();
  });

  const svc = (...args: string[]) => home.run(args, { env: agent.env });
  const place = (port: number) => ['-p', String(port), `${userInfo().username}@127.0.0.1`];
  /** Runs ssh itself, with the agent as the only source of keys. */
  const ssh = (...args: string[]) =>
    runProgram('ssh', [...OPTIONS, ...args], { env: { ...home.env, ...agent.env } });
  /** Locks the agent by a password (`-x`), or unlocks it (`-X`). */
  const lock = (option: '-x' | '-X') => {
    const ask = join(home.path, 'ask');
    writeFileSync(ask, '#!/bin/sh\necho a-password\n', { mode: 0o755 });
    const env = { SSH_ASKPASS: ask, SSH_ASKPASS_REQUIRE: 'force', ...agent.env };
    execFileSync('ssh-add', [option], { env: { ...process.env, ...env }, stdio: 'ignore' });
  };
  const added = async (...options: string[]) => {
    expect(await svc('ssh', 'add', ...options)).toMatchObject({ status: 0, stderr: '' });
  };

  it('add puts the key and the certificate into the agent, one pair however often', async () => {
    const { stdout } = await svc('ssh', 'add', '--json');
    expect(await agent.keys()).toEqual(PAIR);
    const shown = JSON.parse((await svc('ssh', 'status', '--json')).stdout);
    const { until, serial } = JSON.parse(stdout);
    expect(serial).toBe(shown.serial);
    expect(Date.parse(until)).toBeLessThanOrEqual(Date.parse(shown.valid_before));
    expect(Date.parse(until)).toBeGreaterThan(Date.parse(shown.valid_before) - 5_000);
    await svc('ssh', 'cert', '--renew');
    await added();
    expect(await agent.keys()).toEqual(PAIR);
  });

  it('add lets ssh -A log in through a hop, which holds no key', async () => {
    const { hop, target } = sshds;
    const further = ['ssh', ...OPTIONS, ...place(target.port), 'echo in'].join(' ');
    expect((await ssh('-A', ...place(hop.port), further)).status).toBe(255);
    await added();
    const end = await ssh('-A', ...place(hop.port), further);
    expect(end).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
    expect(target.lines.some((line) => line.includes(`Accepted publickey`))).toBe(true);
    expect((await ssh(...place(hop.port), further)).status).toBe(255);
  });

  it('after SCIM DELETE the next command takes them out of the agent', async () => {
    await added();
    expect((await organization.scim('DELETE', `/Users/${user.id}`)).status).toBe(204);
    expect(await svc('status')).toMatchObject({ status: 3 });
    expect(await agent.keys()).toEqual([]);
    expect(existsSync(home.state(app, 'ssh/agents.json'))).toBe(false);
  });

  it.each([
    ['a command of the API', ['keys']],
    ['the check of ssh', ['ssh', 'check', 'target']],
  ])('%s does that too', async (_, command) => {
    await added();
    await organization.scim('DELETE', `/Users/${user.id}`);
    await svc(...command);
    await expect.poll(() => agent.keys()).toEqual([]);
  });

  it('another user’s key in the agent stays, and a logout takes the own pair out', async () => {
    const other = join(home.path, 'other');
    execFileSync('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-f', other]);
    execFileSync('ssh-add', ['-q', other], { env: { ...process.env, ...agent.env } });
    await added();
    expect(await agent.keys()).toEqual(['ECDSA', ...PAIR]);
    // The shell of this logout has no SSH_AUTH_SOCK.
    expect(await home.run(['logout'])).toMatchObject({ status: 0 });
    expect(await agent.keys()).toEqual(['ECDSA']);
  });

  it('a logout says that a locked agent did not give them back, and the next one after the unlock takes them out', async () => {
    await added();
    lock('-x');
    expect(await svc('logout')).toEqual({
      status: 0,
      stdout: `Logged out of ${app.baseUrl}.\n`,
      stderr: [
        'svc: An ssh-agent did not confirm that it gave the SSH key back: it may be locked.',
        '     Unlock it (ssh-add -X) and run: svc logout',
        `     Or revoke its certificate: ${app.baseUrl}/account/credentials`,
        '',
      ].join('\n'),
    });
    lock('-X');
    expect(await agent.keys()).toEqual(PAIR);
    const again = await home.run(['logout']);
    const stdout = `You were not logged in at ${app.baseUrl}.\n`;
    expect(again).toEqual({ status: 0, stdout, stderr: '' });
    expect(await agent.keys()).toEqual([]);
    expect(existsSync(home.state(app, 'ssh/agents.json'))).toBe(false);
  });

  it('a logout takes an earlier key pair out of an agent that was locked when a new one replaced it', async () => {
    await added();
    lock('-x');
    rmSync(home.state(app, 'ssh/id'));
    expect(await svc('ssh', 'cert')).toMatchObject({ status: 0 });
    lock('-X');
    await added();
    expect((await agent.keys()).length).toBe(2 * PAIR.length);
    expect(await svc('logout')).toMatchObject({ status: 0, stderr: '' });
    expect(await agent.keys()).toEqual([]);
  });

  it('setup ssh --remove says so too, before it forgets the key', async () => {
    await svc('setup', 'ssh', '--host', 'target', '--agent', '--yes');
    await added();
    lock('-x');
    const end = await svc('setup', 'ssh', '--remove', '--yes');
    expect(end.status).toBe(0);
    expect(end.stderr).toContain('An ssh-agent did not confirm that it gave the SSH key back.');
    expect(existsSync(home.state(app, 'ssh'))).toBe(false);
  });

  it('an agent that its user emptied is no failure, and one with other keys alone needs no warning', async () => {
    const clear = () =>
      execFileSync('ssh-add', ['-q', '-D'], { env: { ...process.env, ...agent.env } });
    await added();
    clear();
    expect(await svc('logout')).toMatchObject({ status: 0 });
    await home.logIn(app, user.user);
    await added();
    expect(await agent.keys()).toEqual(PAIR);
    clear();
    const other = join(home.path, 'other');
    execFileSync('ssh-keygen', ['-q', '-t', 'ecdsa', '-N', '', '-f', other]);
    execFileSync('ssh-add', ['-q', other], { env: { ...process.env, ...agent.env } });
    expect(await svc('logout')).toMatchObject({ status: 0, stderr: '' });
    expect(existsSync(home.state(app, 'ssh/agents.json'))).toBe(false);
    // An agent that has ended has no keys, so the logout has nothing to report.
    await home.logIn(app, user.user);
    await added();
    await agent.stop();
    expect(await svc('logout')).toMatchObject({ status: 0, stderr: '' });
  });

  it('the agent forgets them after the time of the certificate, or after a shorter one', async () => {
    await added('--time', '1s');
    await expect.poll(() => agent.keys()).toEqual([]);
    const end = JSON.parse((await svc('ssh', 'add', '--time', '30d', '--json')).stdout);
    const shown = JSON.parse((await svc('ssh', 'status', '--json')).stdout);
    expect(Date.parse(end.until)).toBeLessThanOrEqual(Date.parse(shown.valid_before));
  });

  it('with --confirm the agent asks before each use', async () => {
    await agent.stop();
    const answer = join(home.path, 'answer');
    const ask = join(home.path, 'ask');
    writeFileSync(ask, `#!/bin/sh\nexec cat '${answer}'\n`);
    chmodSync(ask, 0o755);
    rmSync(agent.env['SSH_AUTH_SOCK'] ?? '', { force: true });
    agent = await startAgent(home.path, { SSH_ASKPASS: ask, SSH_ASKPASS_REQUIRE: 'force' });
    await added('--confirm');
    writeFileSync(answer, 'no\n');
    const refused = await ssh(...place(sshds.target.port), 'echo in');
    expect(refused.status).toBe(255);
    writeFileSync(answer, 'yes\n');
    expect(await ssh(...place(sshds.target.port), 'echo in')).toMatchObject({ stdout: 'in\n' });
  });

  it('add says in one line with a remedy that there is no agent, and refuses a wrong time', async () => {
    for (const env of [{}, { SSH_AUTH_SOCK: join(home.path, 'gone') }]) {
      expect(await home.run(['ssh', 'add'], { env })).toEqual({
        status: 1,
        stdout: '',
        stderr:
          'svc: No ssh-agent answers in this shell.\n     Start one: eval "$(ssh-agent)", and run it again.\n',
      });
    }
    expect(await svc('ssh', 'add', '--time', 'soon')).toMatchObject({ status: 2, stdout: '' });
    rmSync(home.state(app, 'token.json'));
    rmSync(home.state(app, 'ssh'), { recursive: true });
    expect(await svc('ssh', 'add')).toMatchObject({ status: 3, stdout: '' });
    expect(await agent.keys()).toEqual([]);
  });

  it('setup ssh --agent shows it, gives the agent each new certificate, and --remove undoes it', async () => {
    const set = await svc('setup', 'ssh', '--host', 'target', '--agent', '--yes');
    expect(set.stdout).toContain('keep the SSH key and certificate in a running ssh-agent');
    expect(await svc('ssh', 'check', 'target')).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(await agent.keys()).toEqual(PAIR);
    const listed = () => runProgram('ssh-add', ['-L'], { env: { ...home.env, ...agent.env } });
    const first = (await listed()).stdout;
    await svc('ssh', 'cert', '--renew');
    const second = (await listed()).stdout;
    expect(await agent.keys()).toEqual(PAIR);
    expect(second).not.toBe(first);
    expect(second).toContain(
      readFileSync(home.state(app, 'ssh/id-cert.pub'), 'utf8').trim().split(' ')[1] ?? '-',
    );
    // If the agent lost the key pair, the command adds it again, with the stored certificate.
    execFileSync('ssh-add', ['-q', '-D'], { env: { ...process.env, ...agent.env } });
    expect(await svc('ssh', 'check', 'target')).toEqual({ status: 0, stdout: '', stderr: '' });
    expect((await listed()).stdout).toBe(second);
    expect(await home.run(['ssh', 'check', 'target'])).toMatchObject({ status: 0, stderr: '' });
    const again = await svc('setup', 'ssh', '--yes');
    expect(again.stdout).toContain('Nothing to change');
    expect(await svc('setup', 'ssh', '--remove', '--yes')).toMatchObject({ status: 0 });
    expect(await agent.keys()).toEqual([]);
    expect(existsSync(home.state(app, 'ssh'))).toBe(false);
  });

  it('HOST runs ssh with the certificate, without any setup, and hands on arguments and status', async () => {
    const target = place(sshds.target.port);
    const run = (...args: string[]) => home.run(['ssh', ...OPTIONS, ...target, ...args]);
    expect(await run('echo', 'in')).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
    expect((await run('exit 7')).status).toBe(7);
    expect((await run('echo', '--json', '--server', 'x', '-h')).stdout).toBe(
      '--json --server x -h\n',
    );
    expect((await run('cat <&0; echo done')).stdout).toBe('done\n');
  });

  it('HOST may have the name of a word of svc ssh after --, and a word with a slip is explained', async () => {
    const config = join(home.path, 'config');
    const lines = ['Host check', '  HostName 127.0.0.1', `  Port ${sshds.target.port}`];
    writeFileSync(config, `${lines.join('\n')}\n  User ${userInfo().username}\n`, { mode: 0o600 });
    const options = ['-F', config, ...OPTIONS.slice(2)];
    const end = await home.run(['ssh', '--', ...options, 'check', 'echo', 'in']);
    expect(end).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
    const slip = await home.run(['ssh', 'stauts']);
    expect(slip.status).toBe(255);
    expect(slip.stderr).toContain('Did you mean svc ssh status?');
    expect(await home.run(['ssh', '--'])).toMatchObject({ status: 2, stdout: '' });
    rmSync(home.state(app, 'token.json'));
    rmSync(home.state(app, 'ssh'), { recursive: true });
    expect(await home.run(['ssh', '--', ...options, 'check'])).toMatchObject({ status: 3 });
  });

  it('HOST finds another configuration after the host, where options of ssh may also stand', async () => {
    const setup = ['setup', 'ssh', '--host', 'target.example.com', '--yes'];
    expect(await home.run(setup)).toMatchObject({ status: 0 });
    const [, port = ''] = place(sshds.target.port);
    const host = `${userInfo().username}@target.example.com`;
    const options = [...OPTIONS, '-o', 'HostName=127.0.0.1', '-p', port];
    const end = await home.run(['ssh', host, ...options, 'echo', 'in']);
    expect(end).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
  });

  it('HOST hands a signal on to ssh, and ends with it', async () => {
    const args = ['ssh', ...OPTIONS, ...place(sshds.target.port), 'echo up; exec sleep 60'];
    const end = await home.run(args, {
      started: (child) => {
        child.stdout?.once('data', () => child.kill('SIGTERM'));
      },
    });
    expect(end).toMatchObject({ status: 255, stdout: 'up\n' });
  });
});
