import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { freePort } from '../support/free-port.js';
import { HOST_PROGRAMS, JoiningHost } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { foundOrganization, type ScimOrganization } from '../support/scim-organization.js';
import { runSshd, type Sshd, SSHD_PROGRAMS } from '../support/sshd.js';

const ALICE = 'alice@fleet.example';
const BOB = 'bob@fleet.example';

/**
 * Tests the whole chain: one command joins a running sshd to the service. After SCIM removed a
 * user, the refresh of the host makes sshd refuse the user.
 */
requires(...SSHD_PROGRAMS, ...HOST_PROGRAMS).describe(
  'a running sshd that /install-host.sh joins',
  () => {
    let app: TestApp;
    let host: JoiningHost;
    let sshd: Sshd;
    let script: string;
    let scim: ScimOrganization['scim'];
    beforeAll(async () => {
      app = await startTestApp();
      ({ scim } = await foundOrganization(app, 'fleet.example'));
      host = new JoiningHost(await freePort());
      sshd = await runSshd({ folder: host.folder, port: host.port, config: host.config });
      script = (await app.client().get('/install-host.sh')).text;
    });
    afterAll(async () => {
      await sshd.stop();
      await app.close();
    });
    beforeEach(async () => {
      // the rate limit counts all requests of a host for one IP address
      await app.dataSource.query('TRUNCATE rate_limits');
    });

    const starts = () => sshd.lines.filter((line) => line.startsWith('Server listening')).length;
    /**
     * Runs the script with options as root does. If it reloads sshd, waits until sshd listens
     * again.
     */
    const run = async (...options: string[]) => {
      const before = starts();
      const { status, said } = await host.run(script, [
        ...host.paths,
        '--schedule',
        'systemd',
        ...options,
      ]);
      if (status !== 0) throw new Error(said);
      if (said.includes('reloaded sshd')) await vi.waitUntil(() => starts() > before, 30_000);
      return said;
    };
    /**
     * Provisions a user by SCIM, enrolls a key and gets a certificate. Returns the user's id and a
     * login.
     */
    const newUser = async (email: string) => {
      const made = await scim('POST', '/Users', { userName: email });
      if (made.status !== 201) throw new Error(made.text);
      const { client } = await app.enrolled(email);
      const [name = ''] = email.split('@');
      return { id: String(made.json.id), logIn: await certify(client, name) };
    };
    const certify = async (client: Client, name: string) => {
      const file = join(host.folder, name);
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
      const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
      const { json } = await client.post('/v1/credentials/ssh', { public_key });
      writeFileSync(`${file}-cert.pub`, `${json.certificate}\n`);
      return () => sshd.login(file, `${file}-cert.pub`);
    };

    it('lets a named user in, and refuses the user after SCIM DELETE and the ExecStart of the timer', async () => {
      const { id, logIn: alice } = await newUser(ALICE);
      const { logIn: bob } = await newUser(BOB);
      expect(await alice()).toMatchObject({ accepted: false }); // the host has not joined

      const said = await run('--account', 'root', '--principal', ALICE);
      expect(said).toContain('reloaded sshd, process');
      expect(await alice()).toMatchObject({ accepted: true });
      expect(await bob()).toMatchObject({ accepted: false }); // Bob may not log in as root

      await run('--account', 'root', '--principal', ALICE, '--principal', BOB);
      // sshd reads the principals at each login, so it needs no reload
      expect(await bob()).toMatchObject({ accepted: true });

      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      const inode = statSync(host.list).ino;
      expect((await scim('DELETE', `/Users/${id}`)).status).toBe(204);
      expect(await host.refresh()).toEqual({ status: 0, said: '' });
      expect(statSync(host.list).ino).not.toBe(inode);
      const { accepted, log } = await alice();
      expect(accepted).toBe(false);
      expect(log).toMatch(/revoked/i);
      expect(await bob()).toMatchObject({ accepted: true });
    });

    it('is served as text with the base URL in it, to every client', async () => {
      const { status, headers, text } = await app.client().get('/install-host.sh');
      expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
      expect(text).toContain(`\nserver='${app.baseUrl}'\n`);
      expect(text).not.toMatch(/^#include|@BASE_URL@/m);
    });

    it('says with --status what the host trusts, and reloads nothing the second time', async () => {
      await run('--account', 'root', '--principal', BOB);
      const again = await run('--account', 'root', '--principal', BOB);
      expect(again).toContain('nothing to change');
      expect(again).not.toContain('reloaded');
      const status = await run('--status');
      expect(status).toMatch(
        /authority SHA256:\S+ [\s\S]*number \d{13},[\s\S]*account root: bob@fleet\.example/,
      );
    });

    it('leaves the server with --remove: sshd is reloaded before its list is deleted', async () => {
      const { logIn: carol } = await newUser('carol@fleet.example');
      await run('--account', 'root', '--principal', 'carol@fleet.example');
      expect(await carol()).toMatchObject({ accepted: true });
      expect(await run('--remove')).toContain('reloaded sshd, process');
      expect(existsSync(join(host.etc, 'svc'))).toBe(false);
      expect(existsSync(host.dropIn)).toBe(false);
      const { accepted, log } = await carol();
      expect(accepted).toBe(false);
      expect(log).not.toMatch(/revoked/i); // sshd reads no list any more
      const status = await host.run(script, [...host.paths, '--status']);
      expect(status).toMatchObject({ status: 1 });
    });
  },
);
