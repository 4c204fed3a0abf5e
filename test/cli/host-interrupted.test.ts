import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../support/free-port.js';
import { ending, HOST_PROGRAMS, JoiningHost, ROOT_FOR_ALICE } from '../support/joining-host.js';
import { findProgram, requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';

/** The programs by which the script changes a host. */
const CHANGING = ['mv', 'mkdir', 'rmdir', 'rm', 'ln'];

requires(...HOST_PROGRAMS).describe('/install-host.sh that is killed with kill -9', () => {
  let server: RevocationServer;
  beforeAll(async () => {
    server = await RevocationServer.start();
  });
  afterAll(() => server.stop());

  it.each([
    ['a drop-in', true],
    ['a block', false],
  ])('leaves a working sshd at each step, and the next run finishes (%s)', async (_, dropIns) => {
    const host = new JoiningHost(await freePort(), { dropIns });
    const killer = new Killer(server, host);
    const joining = [...host.paths, '--schedule', 'systemd', ...ROOT_FOR_ALICE];
    const leaving = [...host.paths, '--remove'];

    const apart = snapshot(host);
    const joined = await killer.uninterrupted(joining);
    expect(joined.steps).toBeGreaterThan(10);
    const together = snapshot(host);
    const left = await killer.uninterrupted(leaving);
    expect(host.tree()).toEqual(apart.tree);

    for (const { from, to, options, steps } of [
      { from: apart, to: together, options: joining, steps: joined.steps },
      { from: together, to: apart, options: leaving, steps: left.steps },
    ]) {
      for (let step = 1; step <= steps; step += 1) {
        from.restore();
        await killer.killedBefore(step, options);
        await expectWorking(host);
        expect(await host.run(server.script, options)).toMatchObject({ status: 0 });
        expect(host.tree(), `after a kill before step ${step}`).toEqual(to.tree);
      }
    }
    for (const { remove } of [apart, together, host]) remove.call(undefined);
  });
});

/** Checks that sshd takes its configuration, and that every file in it is there and whole. */
async function expectWorking(host: JoiningHost): Promise<void> {
  expect(await host.test()).toEqual({ status: 0, said: '' });
  const sshd = findProgram('sshd') ?? 'sshd';
  const { said } = await ending(sshd, ['-T', '-f', host.config], '');
  if (said.includes('revokedkeys none')) return;
  const whole = await ending('ssh-keygen', ['-Q', '-l', '-f', host.list], '');
  expect(whole).toMatchObject({ status: 0 });
  expect(existsSync(host.authorities)).toBe(true);
  expect(existsSync(join(host.etc, 'svc/principals/root'))).toBe(true);
}

/** Runs the script with programs that count the changes, and kill the script before one of them. */
class Killer {
  readonly #folder: string;
  readonly #count: string;

  constructor(
    private readonly server: RevocationServer,
    private readonly host: JoiningHost,
  ) {
    this.#folder = `${host.folder}-killer`;
    this.#count = join(this.#folder, 'count');
    mkdirSync(this.#folder);
    for (const name of CHANGING) {
      const script = [
        '#!/bin/sh',
        `count=$(($(cat ${this.#count}) + 1))`,
        `echo "$count" >${this.#count}`,
        '[ "$count" != "$KILL_BEFORE" ] || kill -9 0', // the whole process group
        `exec ${findProgram(name)} "$@"`,
      ];
      writeFileSync(join(this.#folder, name), `${script.join('\n')}\n`, { mode: 0o755 });
    }
  }

  /** Runs the script to its end, and returns the number of its changes. */
  async uninterrupted(options: readonly string[]): Promise<{ steps: number }> {
    expect(await this.#run(0, options)).toMatchObject({ status: 0 });
    return { steps: Number(readFileSync(this.#count, 'utf8')) };
  }

  async killedBefore(step: number, options: readonly string[]): Promise<void> {
    expect(await this.#run(step, options)).toMatchObject({ status: -1 });
  }

  #run(step: number, options: readonly string[]) {
    writeFileSync(this.#count, '0\n');
    const PATH = `${this.#folder}:/usr/sbin:/usr/bin:/sbin:/bin`;
    const environment = { PATH, KILL_BEFORE: String(step), TMPDIR: this.#folder };
    return this.host.run(this.server.script, options, { environment });
  }
}

/** A copy of the files of a host. */
function snapshot(host: JoiningHost) {
  const copy = `${host.folder}-${readdirSync('/run').length}-copy`;
  const options = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true };
  cpSync(host.folder, copy, options);
  return {
    tree: host.tree(),
    restore: () => {
      for (const name of readdirSync(host.folder)) {
        rmSync(join(host.folder, name), { recursive: true });
      }
      cpSync(copy, host.folder, options);
    },
    remove: () => rmSync(copy, { recursive: true }),
  };
}
