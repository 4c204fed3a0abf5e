import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readCertificate } from '@svc/openssh';
import { startTestApp, type EnrolledUser, type TestApp } from '../support/app.js';
import { freePort } from '../support/free-port.js';
import { requires, SSH_LIBRARIES_PYTHON } from '../support/programs.js';
import { count } from '../support/rows.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { startSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { runProgram, SvcHome, type RunOptions } from '../support/svc-command.js';

const PRINCIPAL = 'ada@acme.example';

requires(...SSHD_PROGRAMS).describe('ssh with the block that svc setup wrote', () => {
  let app: TestApp;
  let organization: ScimOrganization;
  let ada: EnrolledUser;
  let sshd: Sshd;
  let home: SvcHome;
  beforeAll(async () => {
    app = await startTestApp();
    organization = await foundOrganization(app, 'acme.example');
    ada = (await provisioned(PRINCIPAL)).user;
    const authority = await app.client().get('/v1/credentials/ssh/ca');
    sshd = await startSshd({ authorities: [authority.text.trim()], principals: [PRINCIPAL] });
  });
  afterAll(async () => {
    await sshd.stop();
    await app.close();
  });
  beforeEach(async () => {
    home = await SvcHome.create();
    await home.logIn(app, ada);
    writeUserConfig();
    await home.run(['setup', 'ssh', '--host', 'target', '--yes']);
  });
  afterEach(() => home.remove());

  /** Provisions a user by SCIM, and enrolls a key as that user. */
  const provisioned = async (userName: string) => {
    const schemas = ['urn:ietf:params:scim:schemas:core:2.0:User'];
    const { json } = await organization.scim('POST', '/Users', { schemas, userName });
    return { id: String(json.id), user: await app.enrolled(userName) };
  };
  const configFile = () => join(home.path, '.ssh/config');
  const certificateFile = () => home.state(app, 'ssh/id-cert.pub');
  const writeUserConfig = () => {
    mkdirSync(join(home.path, '.ssh'), { mode: 0o700 });
    const lines = [
      'Host target alias',
      '  HostName 127.0.0.1',
      `  Port ${sshd.port}`,
      `  User ${userInfo().username}`,
      'Host *',
      '  StrictHostKeyChecking no',
      '  UserKnownHostsFile /dev/null',
      '  LogLevel ERROR',
      '  IdentityAgent none',
      '  BatchMode yes',
    ];
    writeFileSync(configFile(), `${lines.join('\n')}\n`, { mode: 0o600 });
  };
  /**
   * Runs ssh with the test's configuration file. ssh would not find it by HOME, because it takes
   * the home folder from the password database.
   */
  const ssh = (host: string, setting = 'Compression=no') =>
    runProgram('ssh', ['-F', configFile(), '-o', setting, host, 'echo', 'in'], { env: home.env });
  const check = (options: RunOptions = {}) => home.run(['ssh', 'check', 'target'], options);
  const stored = () => readCertificate(readFileSync(certificateFile(), 'utf8'));
  const issued = (at = app) => count(at.dataSource, 'ssh_certificates');

  /** Replaces the stored certificate by one that another authority signed. */
  const storeCertificate = (validity: string) => {
    const folder = home.state(app, 'ssh');
    const authority = join(home.path, 'authority');
    if (!existsSync(authority)) {
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', authority]);
    }
    const args = ['-q', '-s', authority, '-I', 'old', '-n', 'x', '-V', validity];
    execFileSync('ssh-keygen', [...args, join(folder, 'id.pub')]);
    chmodSync(join(folder, 'id-cert.pub'), 0o600); // ssh-keygen wrote it with another mode
  };

  it('logs in to a real sshd with a key pair of its own, and says nothing', async () => {
    expect(await ssh('target')).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
    expect(stored()?.principals).toEqual([PRINCIPAL]);
    for (const name of ['id', 'id.pub', 'id-cert.pub', 'certificate.pub']) {
      expect(statSync(home.state(app, 'ssh', name)).mode & 0o777, name).toBe(0o600);
    }
    const before = await issued();
    expect(await ssh('target')).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
    expect(await issued()).toBe(before);
  });

  it('knows a host by the name that HostName gives, too', async () => {
    expect((await ssh('alias')).status).toBe(255);
    await home.run(['setup', 'ssh', '--host', '127.0.0.?', '--yes']);
    expect(await ssh('alias')).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
  });

  it.each([
    ['an expired certificate', '20200101:20200102'],
    ['one with less than 10 minutes left', '-1m:+9m'],
    ['one that is not valid yet', '+1h:+2h'],
  ])('renews %s without a word', async (_, validity) => {
    await check();
    storeCertificate(validity);
    expect(await ssh('target')).toEqual({ status: 0, stdout: 'in\n', stderr: '' });
    expect(stored()?.keyId).toContain(PRINCIPAL);
  });

  it('leaves a certificate alone that has more than 10 minutes left', async () => {
    await check();
    storeCertificate('-1m:+11m');
    expect(await check()).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(stored()?.keyId).toBe('old');
  });

  it('renews once when many logins begin together', async () => {
    const before = await issued();
    const ends = await Promise.all(Array.from({ length: 6 }, () => check()));
    expect(ends).toEqual(Array.from({ length: 6 }, () => ({ status: 0, stdout: '', stderr: '' })));
    expect((await issued()) - before).toBe(1);
  });

  it('makes a new key pair and certificate when one of its files is gone or damaged', async () => {
    for (const name of ['id', 'id.pub', 'id-cert.pub']) {
      await check();
      rmSync(home.state(app, 'ssh', name));
      expect((await ssh('target')).stdout, name).toBe('in\n');
    }
    writeFileSync(certificateFile(), 'garbage', { mode: 0o600 });
    expect((await ssh('target')).stdout).toBe('in\n');
  });

  it('goes on with a valid certificate where the server is away, and names the fault without one', async () => {
    await check();
    const closed = { baseUrl: `http://localhost:${await freePort()}` };
    mkdirSync(home.state(closed), { recursive: true, mode: 0o700 });
    execFileSync('cp', ['-a', `${home.state(app)}/.`, home.state(closed)]);
    const away = (file: string) =>
      home.run(['--server', closed.baseUrl, 'ssh', 'check', 'target'], { cwd: file });
    storeCertificate('-1m:+5m');
    execFileSync('cp', [certificateFile(), home.state(closed, 'ssh/id-cert.pub')]);
    expect(await away('/')).toEqual({ status: 0, stdout: '', stderr: '' });
    storeCertificate('-2m:-1m');
    execFileSync('cp', [certificateFile(), home.state(closed, 'ssh/id-cert.pub')]);
    const end = await away('/');
    expect([end.status, end.stdout]).toEqual([1, '']);
    expect(end.stderr).toMatch(/^svc: localhost:\d+ cannot be reached: .*\n$/);
  });

  it('does not wait for a server that never answers while the certificate is valid', async () => {
    const accepted: Socket[] = [];
    const silent = createServer((socket) => accepted.push(socket)).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const hanging = { baseUrl: `http://127.0.0.1:${port}` };
    await check();
    storeCertificate('-1m:+5m');
    mkdirSync(home.state(hanging), { recursive: true, mode: 0o700 });
    execFileSync('cp', ['-a', `${home.state(app)}/.`, home.state(hanging)]);
    const end = await home.run(['ssh', 'check', 'target', '--server', hanging.baseUrl]);
    expect(end).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(await home.run(['ssh', 'check', 'target', '--server', hanging.baseUrl])).toEqual(end);
    expect(accepted).toHaveLength(1);
    accepted.forEach((socket) => socket.destroy());
    silent.close();
  });

  it('says in one line that the login has ended, and lets ssh go on without a certificate', async () => {
    rmSync(home.state(app, 'token.json'));
    const end = await ssh('target');
    expect(end.status).toBe(255);
    expect(end.stderr).toMatch(/^svc: you are not logged in; run: svc login\n/);
    home.writeState(app, 'token.json', { access_token: 'x', expires_at: '2020-01-01T00:00:00Z' });
    expect(await check()).toEqual({
      status: 3,
      stdout: '',
      stderr: 'svc: your login has ended; run: svc login\n',
    });
  });

  it('says in one line after SCIM DELETE that the access is gone, and the login fails', async () => {
    const { id, user } = await provisioned('eve@acme.example');
    await home.remove();
    home = await SvcHome.create();
    await home.logIn(app, user);
    writeUserConfig();
    const setup = ['setup', 'ssh', '--host', 'target', '--yes'];
    expect(await home.run(setup)).toMatchObject({ status: 0 });
    expect(await check()).toMatchObject({ status: 0 });
    expect((await organization.scim('DELETE', `/Users/${id}`)).status).toBe(204);
    storeCertificate('20200101:20200102');
    const end = await ssh('target');
    expect(end.status).toBe(255);
    const lines = end.stderr.split('\n').filter((line) => line.startsWith('svc'));
    expect(lines).toEqual([
      `svc: ${new URL(app.baseUrl).host} has ended your login or removed your access; run: svc login`,
    ]);
  });

  it('says so in one line too while the stored certificate would be valid for hours, and removes it', async () => {
    const { id, user } = await provisioned('mallory@acme.example');
    await home.remove();
    home = await SvcHome.create();
    await home.logIn(app, user);
    expect(await check()).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(await check()).toEqual({ status: 0, stdout: '', stderr: '' });
    expect((await organization.scim('DELETE', `/Users/${id}`)).status).toBe(204);
    rmSync(home.state(app, 'ssh/last-recheck')); // as if five seconds had passed
    const host = new URL(app.baseUrl).host;
    const line = `svc: ${host} has revoked your SSH certificate: your login has ended or your access was removed; run: svc login\n`;
    expect(await check()).toEqual({ status: 0, stdout: '', stderr: line });
    expect(existsSync(certificateFile())).toBe(false);
    expect(await check()).toMatchObject({
      status: 3,
      stderr: `svc: ${host} has ended your login or removed your access; run: svc login\n`,
    });
  });

  it('asks once for many logins at once whether the certificate is revoked, and never waits for the answer', async () => {
    await check();
    const asked: string[] = [];
    const silent = createHttpServer(({ url = '' }) => asked.push(url));
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const server = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    cpSync(home.state(app), home.state({ baseUrl: server }), { recursive: true });
    rmSync(home.state({ baseUrl: server }, 'ssh/last-recheck'), { force: true });
    const checks = Array.from({ length: 5 }, () =>
      home.run(['ssh', 'check', 'target', '--server', server]),
    );
    for (const end of await Promise.all(checks)) {
      expect(end).toEqual({ status: 0, stdout: '', stderr: '' });
    }
    expect(asked).toEqual([`/v1/credentials/ssh/krl/${stored()?.serial}`]);
    silent.closeAllConnections();
    silent.close();
  });

  it.each([
    `a$(touch X)`,
    'a`touch X`',
    `a';touch X;'`,
    'a;touch X',
    'a|touch X',
    'a\ntouch X',
    'a" touch X "',
  ])('runs no command that hides in the host name %j', async (hostile) => {
    const file = join(home.path, 'planted');
    await home.run(['setup', 'ssh', '--host', 'a*', '--yes']);
    const name = hostile.replace('X', file);
    await ssh(name);
    // A host name from `HostName` reaches the shell even if ssh refuses the same name as an
    // argument (CVE-2023-51385).
    await ssh('other', `HostName="${name.replaceAll('"', '\\"')}"`);
    expect(existsSync(file)).toBe(false);
  });

  it('takes over the certificate that an earlier version stored, and asks for no new one', async () => {
    await check();
    const earlier = home.state(app, 'ssh/certificate.pub');
    rmSync(earlier);
    renameSync(certificateFile(), earlier);
    const before = await issued();
    expect(await check()).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(await issued()).toBe(before);
    expect([stored()?.principals, lstatSync(earlier).isSymbolicLink()]).toEqual([
      [PRINCIPAL],
      true,
    ]);
    expect(readFileSync(earlier, 'utf8')).toBe(readFileSync(certificateFile(), 'utf8'));
  });

  requires('ssh-agent', 'ssh-add').describe('ssh-add', () => {
    it('takes the certificate with the key, so that an agent logs in', async () => {
      await check();
      const options = ['-F', '/dev/null', '-p', String(sshd.port), '-o', 'BatchMode=yes'];
      const known = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null'];
      const line = ['ssh', ...options, ...known, `${userInfo().username}@127.0.0.1`, 'echo in'];
      const words = line.map((word) => `'${word}'`).join(' ');
      const script = `ssh-add '${home.state(app, 'ssh/id')}' && ${words}`;
      const end = await runProgram('ssh-agent', ['sh', '-c', script], { env: home.env });
      expect(end).toMatchObject({ status: 0, stdout: 'in\n' });
      expect(end.stderr).toContain('Certificate added: ');
    });
  });

  requires('git').describe('git commit -S', () => {
    it('signs with the certificate, which the authority alone proves', async () => {
      await check();
      const signers = join(home.path, 'signers');
      const authority = (await app.client().get('/v1/credentials/ssh/ca')).text.trim();
      writeFileSync(signers, `*@acme.example cert-authority,namespaces="git" ${authority}\n`);
      const settings = {
        'gpg.format': 'ssh',
        'user.signingKey': certificateFile(),
        'gpg.ssh.allowedSignersFile': signers,
        'user.name': 'Ada',
        'user.email': PRINCIPAL,
      };
      const named = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
      const git = (...args: string[]) =>
        runProgram('git', [...named, ...args], { env: home.env, cwd: home.path });
      await git('init', '--quiet', 'repository');
      const commit = ['-C', 'repository', 'commit', '--quiet', '--allow-empty', '-S', '-m', 'x'];
      expect(await git(...commit)).toEqual({ status: 0, stdout: '', stderr: '' });
      const verified = await git('-C', 'repository', 'verify-commit', 'HEAD');
      expect(verified).toMatchObject({ status: 0 });
      expect(verified.stderr).toContain(`Good "git" signature for ${PRINCIPAL}`);
    });
  });

  requires('ssh-libraries').describe('Paramiko and AsyncSSH', () => {
    it('log in by the path of the key alone', async () => {
      await check();
      const script = join(import.meta.dirname, '../support/ssh-libraries.py');
      const args = [script, home.state(app, 'ssh/id'), String(sshd.port), userInfo().username];
      const end = await runProgram(SSH_LIBRARIES_PYTHON, args, { env: home.env });
      expect(end).toMatchObject({ status: 0, stdout: 'paramiko in\nasyncssh in\n' });
    });
  });

  it('asks for the principals of the setup alone, and states the refusal of another', async () => {
    await home.run(['setup', 'ssh', '--principal', 'root', '--yes']);
    const end = await check();
    expect(end.status).toBe(4);
    expect(end.stderr.split('\n')).toHaveLength(2);
    await home.run(['setup', 'ssh', '--principal', PRINCIPAL, '--yes']);
    expect(await check()).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('takes the keys and the certificate away with --remove', async () => {
    const before = readFileSync(configFile(), 'utf8');
    await check();
    expect(await home.run(['setup', 'ssh', '--remove', '--yes'])).toMatchObject({ status: 0 });
    expect(existsSync(home.state(app, 'ssh'))).toBe(false);
    expect(before.startsWith(readFileSync(configFile(), 'utf8'))).toBe(true);
    expect(readFileSync(configFile(), 'utf8')).not.toContain('svc');
  });

  it('prints the certificate with svc ssh cert, and without the network with svc ssh status', async () => {
    expect((await home.run(['ssh', 'status'])).stderr).toContain('Run: svc ssh cert');
    const printed = await home.run(['ssh', 'cert', '--json']);
    expect(JSON.parse(printed.stdout)).toMatchObject({ principals: [PRINCIPAL], is_valid: true });
    expect((await home.run(['ssh', 'status', '--json'])).stdout).toBe(printed.stdout);
    const renewed = await home.run(['ssh', 'cert', '--renew']);
    expect(renewed.stdout).toContain(PRINCIPAL);
    expect(stored()?.serial).not.toBe(JSON.parse(printed.stdout).serial);
  });

  it('ends with status 2 for arguments that it does not know', async () => {
    for (const args of [[], ['--renew'], ['cert', 'x', 'y'], ['status', '--loud']]) {
      expect(await home.run(['ssh', ...args])).toMatchObject({ status: 2, stdout: '' });
    }
  });
});
