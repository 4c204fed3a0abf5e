import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { encodeKeyRevocationList, NO_RUNS } from '@svc/openssh';
import { startTestApp, type TestApp } from '../support/app.js';
import { newAddress, type Client } from '../support/client.js';
import { ending, type Ending } from '../support/joining-host.js';
import { requires } from '../support/programs.js';
import { atScale } from '../support/scale.js';
import { SSHD_PROGRAMS, startSshd, type Sshd } from '../support/sshd.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

function run(program: string, args: readonly string[]) {
  return new Promise<Ending>((resolve) => {
    const options = { maxBuffer: 64 * 1024 * 1024 };
    execFile(program, args, options, (error, stdout, stderr) => {
      const status = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      resolve({ status, said: stdout + stderr });
    });
  });
}

/** The number of serials in a long revocation list. */
const MANY = atScale({ small: 5_000, full: 100_000 });

const evenly = (count: number, step: number, start = 1_763_683_200_000) =>
  Array.from({ length: count }, (_, index) => start + step * index);

requires('ssh-keygen').describe('OpenSSH PROTOCOL.krl, read by ssh-keygen -Q', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await makeTemporaryDirectory();
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(folder, 'ca')]);
  });
  afterAll(() => removeDirectory(folder));

  it.each([
    ['nothing', []],
    ['one serial', [1_763_683_200_000]],
    ['a row', evenly(MANY, 1)],
    ['every second', evenly(MANY, 2)],
    ['every hundredth', evenly(MANY / 5, 100)],
    ['every hundred-thousandth', evenly(MANY, 99_991)],
    ['a bitmap of the longest that it reads', [...evenly(8_192, 2), 1_763_683_216_383]],
    ['all kinds', [...evenly(500, 1), ...evenly(500, 3, 2e12), ...evenly(500, 999, 3e12), 2 ** 52]],
  ])('contains exactly the serials of %s', async (_, serials) => {
    const file = join(folder, 'krl');
    const [, key = ''] = readFileSync(join(folder, 'ca.pub'), 'utf8').split(' ');
    writeFileSync(
      file,
      encodeKeyRevocationList({
        number: 42n,
        generatedAt: new Date(),
        comment: 'ssh-ca@example.com',
        ranges: NO_RUNS,
        authorities: [{ authority: Buffer.from(key, 'base64'), serials }],
      }),
    );
    const { status, said } = await run('ssh-keygen', ['-Q', '-l', '-f', file]);
    expect(status).toBe(0);
    expect(said).toContain('# KRL version 42');
    expect(said).toContain('ssh-ca@example.com');
    expect(listed(said)).toEqual(serials);
  });

  it.each([
    ['a row', evenly(5_000, 1)],
    ['every third', evenly(5_000, 3)],
    ['scattered ones', evenly(5_000, 70_001)],
    ['rows of different lengths', evenly(5_000, 1).filter((serial) => serial % 97 > 20)],
    ['clusters', evenly(5_000, 1).map((serial, index) => serial + 1_000 * Math.floor(index / 40))],
  ])('is for %s no longer than the list of ssh-keygen -k', async (_, serials) => {
    const [theirs, specification] = [join(folder, 'theirs'), join(folder, 'specification')];
    writeFileSync(specification, serials.map((serial) => `serial: ${serial}\n`).join(''));
    const ca = join(folder, 'ca.pub');
    await run('ssh-keygen', ['-q', '-k', '-f', theirs, '-s', ca, specification]);
    const [, key = ''] = readFileSync(ca, 'utf8').split(' ');
    const ours = encodeKeyRevocationList({
      number: 0n,
      generatedAt: new Date(),
      comment: '',
      ranges: NO_RUNS,
      authorities: [{ authority: Buffer.from(key, 'base64'), serials }],
    });
    expect(ours.length).toBeLessThanOrEqual(readFileSync(theirs).length);
  });
});

/** Parses the output of `ssh-keygen -Q -l`: each line has one serial or a range of serials. */
function listed(said: string): number[] {
  return [...said.matchAll(/^serial: (\d+)(?:-(\d+))?$/gm)].flatMap(([, low, high = low]) =>
    evenly(Number(high) - Number(low) + 1, 1, Number(low)),
  );
}

requires(...SSHD_PROGRAMS, 'curl', 'flock').describe('a real sshd with RevokedKeys', () => {
  let app: TestApp;
  let sshd: Sshd;
  let folder: string;
  let list: string;
  let program: string;
  const people = new Map<string, Client>();

  beforeAll(async () => {
    app = await startTestApp();
    for (const name of ['ada', 'bob']) {
      people.set(name, (await app.enrolled(`${name}@acme.example`)).client);
    }
    folder = await makeTemporaryDirectory();
    mkdirSync(join(folder, 'svc'));
    list = join(folder, 'svc/revoked.krl');
    program = join(folder, 'svc-refresh-krl');
    const script = (await app.client().get('/install-host.sh')).text;
    const printed = await ending('sh', ['-s', '--', '--print', 'program'], script);
    writeFileSync(program, printed.said, { mode: 0o755 });
    const authority = await app.client().get('/v1/credentials/ssh/ca');
    sshd = await startSshd({
      authorities: [authority.text.trim()],
      principals: ['ada@acme.example', 'bob@acme.example'],
      config: [`RevokedKeys ${list}`],
    });
  });
  afterAll(async () => {
    await sshd.stop();
    await app.close();
    await removeDirectory(folder);
  });
  beforeEach(async () => {
    // the rate limit counts all requests of the refresh program for one IP address
    await app.dataSource.query('TRUNCATE ssh_certificates, rate_limits');
    rmSync(list, { force: true });
  });

  /** Runs the refresh program of docs/operations/ssh.md, as on a host that was set up by hand. */
  const refreshed = async () => {
    const { status, said } = await run(program, [`${app.baseUrl}/v1/credentials/ssh/krl`, list]);
    if (status !== 0) throw new Error(said);
  };

  let keys = 0;
  /**
   * Issues a certificate for a new key. Returns its serial, a login with it, and a query of the
   * list.
   */
  const certify = async (name: 'ada' | 'bob') => {
    const file = join(sshd.folder, `${name}${(keys += 1)}`);
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    const body = { public_key: readFileSync(`${file}.pub`, 'utf8').trim() };
    const answer = await people.get(name)?.post('/v1/credentials/ssh', body, {
      address: newAddress(),
    });
    if (answer?.status !== 200) throw new Error(`no certificate: ${answer?.text}`);
    const { json } = answer;
    const certificate = `${file}-cert.pub`;
    writeFileSync(certificate, `${json.certificate}\n`);
    return {
      serial: json.serial as string,
      logIn: () => sshd.login(file, certificate),
      ask: () => run('ssh-keygen', ['-Q', '-f', list, certificate]),
    };
  };
  const revoke = (serial: string) =>
    app.dataSource.query(
      "UPDATE ssh_certificates SET revoked_at = now(), revoke_reason = 'test', revoked_by = 'test' WHERE serial = $1",
      [serial],
    );

  it('refuses a revoked certificate after the refresh, and no other certificate', async () => {
    const ada = await certify('ada');
    const bob = await certify('bob');
    await refreshed();
    expect(await ada.logIn()).toMatchObject({ accepted: true });
    expect(await ada.ask()).toMatchObject({ status: 0 });

    await revoke(ada.serial);
    // sshd still has the list from before the revocation
    expect(await ada.logIn()).toMatchObject({ accepted: true });
    await refreshed();
    const { accepted, log } = await ada.logIn();
    expect(accepted).toBe(false);
    expect(log).toMatch(/revoked/i);
    expect(await ada.ask()).toMatchObject({ status: 1, said: expect.stringContaining('REVOKED') });

    expect(await bob.logIn()).toMatchObject({ accepted: true });
    expect(await bob.ask()).toMatchObject({ status: 0, said: expect.stringContaining('ok') });
  });

  it('accepts a certificate of the same serial from another authority', async () => {
    const ada = await certify('ada');
    await revoke(ada.serial);
    await refreshed();
    const [ca, key] = [join(folder, 'other_ca'), join(folder, 'other')];
    for (const file of [ca, key]) {
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
    }
    const options = ['-I', 'x', '-n', 'x', '-z', ada.serial];
    execFileSync('ssh-keygen', ['-q', '-s', ca, ...options, `${key}.pub`]);
    const answer = await run('ssh-keygen', ['-Q', '-f', list, `${key}-cert.pub`]);
    expect(answer).toMatchObject({ status: 0 });
  });

  it('refuses every user without a list or with a malformed one, as the documentation says', async () => {
    const ada = await certify('ada');
    expect(await ada.logIn()).toMatchObject({ accepted: false });
    writeFileSync(list, '<html>');
    expect(await ada.logIn()).toMatchObject({ accepted: false });
    await refreshed();
    expect(await ada.logIn()).toMatchObject({ accepted: true });
  });

  it('lets permitted users log in at every moment of a refresh', async () => {
    const ada = await certify('ada');
    await refreshed();
    const refreshing = (async () => {
      for (let index = 0; index < 12; index += 1) {
        await revoke((await certify('bob')).serial);
        await refreshed();
      }
    })();
    for (let index = 0; index < 5; index += 1) {
      expect(await ada.logIn()).toMatchObject({ accepted: true });
    }
    await refreshing;
  });
});
