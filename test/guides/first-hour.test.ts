import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import type { EnrolledUser, TestApp } from '../support/app.js';
import { createTestDatabase } from '../support/database.js';
import { freePort } from '../support/free-port.js';
import { guideBlock, runCommands, runToSuccess } from '../support/guide.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { Laptop } from '../support/laptop.js';
import { authorize } from '../support/oauth-flow.js';
import { requires } from '../support/programs.js';
import { PUBLIC_URL, PublicName } from '../support/public-name.js';
import { addTarget } from '../support/targets.js';
import { startSshd, SSHD_PROGRAMS, type Sshd } from '../support/sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const ROOT = resolve(import.meta.dirname, '../..');

requires('curl', ...SSHD_PROGRAMS).describe('the first hour of an engineer', () => {
  let name: PublicName;
  let app: TestApp;
  let ada: EnrolledUser;
  let sshd: Sshd;
  let laptop: Laptop;
  beforeAll(async () => {
    name = await PublicName.open();
    app = await name.startApp();
    ada = await app.enrolled('ada@first-hour.example');
    const authority = await app.client().get('/v1/credentials/ssh/ca');
    sshd = await startSshd({
      authorities: [authority.text.trim()],
      principals: ['ada@first-hour.example'],
    });
    await addTarget(app.dataSource, 'ada@first-hour.example', {
      name: 'prod',
      hosts: ['127.0.0.1'],
      logins: [userInfo().username],
    });
    laptop = await Laptop.create(process.execPath, sshd.port, name.env);
  });
  afterAll(async () => {
    await sshd.stop();
    await app.close();
    await name.close();
    await removeDirectory(laptop.home);
  });

  /** Touches the key as the user in front of the opened browser would. */
  const touchKey = async () => {
    const { searchParams } = new URL(await laptop.openedAddress());
    const callback = await authorize(ada.client, Object.fromEntries(searchParams), ada.key);
    await fetch(callback);
  };

  it('installs, logs in, connects ssh and logs in to a host by the commands of the guide', async () => {
    const install = guideBlock('first-hour-engineer.md', 'install');
    expect(await laptop.type(install)).toMatchObject({ status: 0, stderr: '' });

    const login = await laptop.type(guideBlock('first-hour-engineer.md', 'login'), touchKey);
    expect(login).toMatchObject({ status: 0 });
    expect(login.stdout).toContain('Logged in as ada@first-hour.example');

    const setup = await laptop.type(guideBlock('first-hour-engineer.md', 'setup'));
    expect(setup).toMatchObject({ status: 0, stderr: '' });
    expect(existsSync(join(laptop.home, '.ssh/config'))).toBe(true);

    // The sshd of the test is on this machine, and knows the account that runs the tests.
    const host = { 'root@web1.prod.example.com': `${userInfo().username}@127.0.0.1` };
    const ssh = await laptop.type(guideBlock('first-hour-engineer.md', 'ssh', host));
    expect(ssh.status, ssh.stderr).toBe(0);
  });

  it('the doctor finds the login well', async () => {
    const doctor = await laptop.type(guideBlock('first-hour-engineer.md', 'doctor'));
    expect(doctor.stdout).toContain('ada@first-hour.example');
    expect(doctor.stdout).toContain(app.baseUrl);
  });
});

requires('curl', 'openssl', ...HOST_PROGRAMS).describe('the first hour of an operator', () => {
  it('the settings start the service, and a server joins', async () => {
    await using parts = new AsyncDisposableStack();
    const folder = await makeTemporaryDirectory();
    parts.defer(() => removeDirectory(folder));
    const database = await createTestDatabase();
    parts.defer(() => database.drop());
    const port = await freePort();
    const name = await PublicName.open();
    parts.defer(() => name.close());
    const secret = await runToSuccess(guideBlock('first-hour-operator.md', 'secret'));
    expect(Buffer.from(secret, 'base64')).toHaveLength(48);
    const redirectUri = `${PUBLIC_URL}/oauth/callback`;
    const idp = await startDemoIdentityProvider({
      clientId: 'svc',
      clientSecret: 'of the client',
      redirectUri,
    });
    parts.defer(() => idp.close());
    const file = join(folder, 'svc.env');
    // Only the base URL stays as in the guide. The port, the database, the provider and the folder
    // are the test's own.
    const settings = guideBlock('first-hour-operator.md', 'settings', {
      '127.0.0.1:3000': `127.0.0.1:${port}`,
      'postgres://svc@db.example.com/svc': database.url,
      'replace-me-too': '"of the client"',
      'https://idp.example.com': idp.issuer,
      '/var/lib/svc': folder,
    }).replace('replace-me', secret.trim());
    writeFileSync(file, settings);

    const start = guideBlock('first-hour-operator.md', 'start', { '/etc/svc/svc.env': file });
    const child = spawn('bash', ['-c', `exec ${start}`], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    const ended = once(child, 'close');
    parts.defer(async () => {
      child.kill('SIGTERM');
      await ended;
    });
    name.lead(port);
    const ready = guideBlock('first-hour-operator.md', 'ready');
    for (;;) {
      const { status, stdout } = await runCommands(ready, { env: name.env });
      if (status === 0) {
        expect(stdout).toBe('{"status":"ready"}');
        break;
      }
      if (child.exitCode !== null) throw new Error(output);
      await delay(20);
    }

    const host = new JoiningHost(await freePort());
    parts.defer(() => removeDirectory(host.folder));
    // The options keep the script from changing the sshd and the timers of this machine.
    const joins = guideBlock('first-hour-operator.md', 'host', {
      'sh -s --': `sh -s -- ${host.paths.join(' ')} --no-reload --schedule systemd`,
    });
    await runToSuccess(joins, { env: name.env });
    expect(readFileSync(host.authorities, 'utf8')).toContain('ssh-ed25519 ');
    expect((await host.test()).status).toBe(0);
    const principals = readFileSync(join(host.etc, 'svc/principals/root'), 'utf8');
    expect(principals).toContain('\nyou@example.com\n');
  });
});
