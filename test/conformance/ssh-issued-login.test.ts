import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.js';
import { requires } from '../support/programs.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from '../support/sshd.js';
import '../support/full-scale-only.js';

/**
 * Tests a login with the service's own output: sshd trusts the published authority, and ssh uses an
 * issued certificate.
 */
requires(...SSHD_PROGRAMS).describe('a real sshd that trusts /v1/credentials/ssh/ca', () => {
  let app: TestApp;
  let sshd: Sshd;
  beforeAll(async () => {
    app = await startTestApp();
    const authority = await app.client().get('/v1/credentials/ssh/ca');
    sshd = await startSshd({
      authorities: [authority.text.trim()],
      principals: ['ada@acme.example'],
    });
  });
  afterAll(async () => {
    await sshd.stop();
    await app.close();
  });

  const newKey = (name: string) => {
    const file = join(sshd.folder, name);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    return file;
  };
  /**
   * Enrolls a user, and requests a certificate for a new SSH key. Returns the arguments of a login
   * with it.
   */
  const certify = async (email: string, ask: object = {}) => {
    const { client } = await app.enrolled(email);
    const file = newKey(email);
    const public_key = readFileSync(`${file}.pub`, 'utf8').trim();
    const { json } = await client.post('/v1/credentials/ssh', { public_key, ...ask });
    writeFileSync(`${file}-cert.pub`, `${json.certificate}\n`);
    return {
      logIn: () => sshd.login(file, `${file}-cert.pub`),
      expiresAt: Date.parse(json.valid_before as string),
    };
  };

  it('admits the user that the host names by e-mail, until the certificate expires', async () => {
    const { logIn, expiresAt } = await certify('ada@acme.example', { ttl_seconds: 10 });
    expect(await logIn()).toMatchObject({ accepted: true });
    await setTimeout(expiresAt - Date.now() + 500);
    expect(await logIn()).toMatchObject({ accepted: false });
  });

  it('refuses another principal', async () => {
    const { logIn } = await certify('eve@acme.example');
    expect(await logIn()).toMatchObject({ accepted: false });
  });

  it('refuses a plain key', async () => {
    expect(await sshd.login(newKey('plain'))).toMatchObject({ accepted: false });
  });
});
