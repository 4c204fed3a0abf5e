import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { moveSerials } from '#domain/ssh/serials/serials.repository.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { requires } from '../support/programs.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from '../support/sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';
import '../support/full-scale-only.js';

const ADA = 'ada@lost.example';

/**
 * The service and sshd trust two keys of the authority. The service signs with one of them, and has
 * signed with the other one before.
 */
requires(...SSHD_PROGRAMS).describe('a real sshd after PostgreSQL lost commits', () => {
  let app: TestApp;
  let sshd: Sshd;
  let folder: string;
  let ada: Client;
  let list: string;

  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    list = join(folder, 'revoked.krl');
    for (const ca of ['present', 'former']) newKey(join(folder, ca));
    app = await startTestApp({
      environment: {
        SVC_SSH_CA_KEY: ['present', 'former.pub']
          .map((file) => readFileSync(join(folder, file), 'utf8'))
          .join(''),
      },
    });
    ada = (await app.enrolled(ADA)).client;
    const authorities = (await app.client().get('/v1/credentials/ssh/ca')).text.trim();
    await refresh();
    sshd = await startSshd({
      authorities: [authorities],
      principals: [ADA],
      config: [`RevokedKeys ${list}`],
    });
  });
  afterAll(async () => {
    await sshd.stop();
    await app.close();
    await removeDirectory(folder);
  });

  const newKey = (file: string) => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    return file;
  };

  const refresh = async () => {
    const answer = await fetch(`${app.baseUrl}/v1/credentials/ssh/krl`, {
      headers: { 'x-forwarded-for': newAddress() },
    });
    writeFileSync(list, Buffer.from(await answer.arrayBuffer()));
  };

  let keys = 0;
  const held = (file: string, serial: bigint) => ({
    serial,
    logIn: async () => (await sshd.login(file, `${file}-cert.pub`)).accepted,
    /** Returns the status of `ssh-keygen -Q`: 0 for a certificate that is not revoked. */
    asked: () => spawnSync('ssh-keygen', ['-Q', '-f', list, `${file}-cert.pub`]).status,
  });

  const certify = async () => {
    const file = newKey(join(folder, `ada${(keys += 1)}`));
    const body = { public_key: readFileSync(`${file}.pub`, 'utf8').trim() };
    const options = { address: newAddress() };
    const { json } = await ada.post('/v1/credentials/ssh', body, options);
    writeFileSync(`${file}-cert.pub`, `${json.certificate}\n`);
    return held(file, BigInt(json.serial));
  };

  /** Signs a certificate as the service did with the former key. */
  const certifyFormerly = (serial: bigint) => {
    const file = newKey(join(folder, `ada${(keys += 1)}`));
    const options = ['-I', ADA, '-n', ADA, '-V', '-1m:+8h', '-z', String(serial)];
    const ca = join(folder, 'former');
    execFileSync('ssh-keygen', ['-q', '-s', ca, ...options, `${file}.pub`]);
    return held(file, serial);
  };

  const move = (revokeFrom: 'first' | 'unrecorded') =>
    app.dataSource.transaction((tx) =>
      moveSerials(tx, {
        kind: 'another',
        clock: Date.now(),
        revokeFrom,
        highestSeen: 1n,
        sessionHours: 8,
      }),
    );

  it('trusts both keys', async () => {
    const { text } = await app.client().get('/v1/credentials/ssh/ca');
    expect(text.trim().split('\n')).toHaveLength(2);
  });

  it('refuses the certificates without a record, and no other', async () => {
    const [recorded, lost] = [await certify(), await certify()];
    expect([await recorded.logIn(), await lost.logIn()]).toEqual([true, true]);
    await app.dataSource.query('DELETE FROM ssh_certificates WHERE serial = $1', [
      String(lost.serial),
    ]);
    const { floor } = await move('unrecorded');
    const next = await certify();
    expect(next.serial).toBeGreaterThan(floor);
    await refresh();
    const all = [recorded, lost, next];
    expect(all.map(({ asked }) => asked())).toEqual([0, 1, 0]);
    expect([await recorded.logIn(), await lost.logIn(), await next.logIn()]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it('refuses every certificate up to the floor under both keys, and accepts the next one', async () => {
    const old = await certify();
    const former = certifyFormerly(old.serial - 1n);
    expect([old.asked(), former.asked()]).toEqual([0, 0]);
    const { floor } = await move('first');
    const [next, formerNext] = [await certify(), certifyFormerly(floor + 1n)];
    const atFloor = certifyFormerly(floor);
    await refresh();
    const all = [old, former, next, formerNext];
    expect([atFloor, ...all].map(({ asked }) => asked())).toEqual([1, 1, 1, 0, 0]);
    const accepted: boolean[] = [];
    for (const { logIn } of all) accepted.push(await logIn());
    expect(accepted).toEqual([false, false, true, true]);

    const said = spawnSync('ssh-keygen', ['-Q', '-l', '-f', list]).stdout.toString();
    expect(said.match(/^serial: .*$/gm)).toEqual([`serial: 1-${floor}`, `serial: 1-${floor}`]);
    expect(readFileSync(list).length).toBeLessThan(300);
  });
});
