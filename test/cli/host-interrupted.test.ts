import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { freePort } from '../support/free-port.js';
import { ending, HOST_PROGRAMS, JoiningHost, ROOT_FOR_ALICE } from '../support/joining-host.js';
import { findProgram, requires } from '../support/programs.js';
import { RevocationServer } from '../support/revocation-server.js';
import { atScale } from '../support/scale.js';
import '../support/full-scale-only.js';

/** The programs by which the script changes a host. */
const CHANGING = ['mv', 'mkdir', 'rmdir', 'rm', 'ln'];

/**
 * The number of steps between two kills: each step takes three runs of the script, so at small
 * scale most steps are left out.
 */
const STRIDE = atScale({ small: 9, full: 1 });

requires(...HOST_PROGRAMS).describe('/install-host.sh that is killed with kill -9', () => {
  let server: RevocationServer;
  beforeAll(async () => {
    server = await RevocationServer.start();
  });
  afterAll(() => server.stop());

  it.each([
    ['joins by a drop-in', true, 'joining'],
    ['leaves a block', false, 'leaving'],
  ] as const)(
    'has at each step a working sshd, and the next run finishes: %s',
    async (_, dropIns, way) => {
      const host = new JoiningHost(await freePort(), { dropIns });
      const killer = new Killer(server, host);
      const apart = new Snapshot(host);
      try {
        const joining = [...host.paths, '--schedule', 'systemd', ...ROOT_FOR_ALICE];
        const steps = { joining: await killer.uninterrupted(joining), leaving: 0 };
        const together = new Snapshot(host);
        const leaving = [...host.paths, '--remove'];
        steps.leaving = await killer.uninterrupted(leaving);
        expect(host.tree()).toEqual(apart.tree);

        const [from, to] = way === 'joining' ? [apart, together] : [together, apart];
        const options = way === 'joining' ? joining : leaving;
        expect(steps[way]).toBeGreaterThan(10);
        for (let step = 1; step <= steps[way]; step += STRIDE) {
          from.restore();
          await killer.killedBefore(step, options);
          await expectWorking(host);
          expect(await host.run(server.script, options)).toMatchObject({ status: 0 });
          expect(host.tree(), `after a kill before step ${step}`).toEqual(to.tree);
        }
      } finally {
        host.remove();
      }
    },
  );
});

/**
 * Checks that sshd accepts its configuration, and that the files named in it exist and are
 * complete.
 */
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

/**
 * Runs the script with stand-ins for the programs that change a host. They count the changes, and
 * kill the script before one of them.
 */
class Killer {
  readonly #folder: string;
  readonly #count: string;

  constructor(
    private readonly server: RevocationServer,
    private readonly host: JoiningHost,
  ) {
    this.#folder = mkdtempSync(join(tmpdir(), 'svc-host-killer-'));
    onTestFinished(() => rmSync(this.#folder, { recursive: true }));
    this.#count = join(this.#folder, 'count');
    for (const name of CHANGING) {
      const script = [
        '#!/bin/sh',
        `count=$(($(cat ${this.#count}) + 1))`,
        `echo "$count" >${this.#count}`,
        '[ "$count" != "$KILL_BEFORE" ] || kill -9 0', // 0 is the process group
        `exec ${findProgram(name)} "$@"`,
      ];
      writeFileSync(join(this.#folder, name), `${script.join('\n')}\n`, { mode: 0o755 });
    }
  }

  /** Runs the script to its end, and returns the number of its changes. */
  async uninterrupted(options: readonly string[]): Promise<number> {
    const { status, said } = await this.#run(0, options);
    if (status !== 0) throw new Error(said);
    return Number(readFileSync(this.#count, 'utf8'));
  }

  async killedBefore(step: number, options: readonly string[]): Promise<void> {
    const { status, said } = await this.#run(step, options);
    if (status !== -1) throw new Error(`the script was not killed: ${said}`);
  }

  #run(step: number, options: readonly string[]) {
    writeFileSync(this.#count, '0\n');
    const PATH = `${this.#folder}:/usr/sbin:/usr/bin:/sbin:/bin`;
    const environment = { PATH, KILL_BEFORE: String(step), TMPDIR: this.#folder };
    return this.host.run(this.server.script, options, { environment });
  }
}

const COPYING = { recursive: true, preserveTimestamps: true, verbatimSymlinks: true } as const;

/** A copy of the files of a host at one time. */
class Snapshot {
  readonly tree: Record<string, string>;
  readonly #copy = mkdtempSync(join(tmpdir(), 'svc-host-copy-'));

  constructor(private readonly host: JoiningHost) {
    this.tree = host.tree();
    cpSync(host.folder, this.#copy, COPYING);
    onTestFinished(() => rmSync(this.#copy, { recursive: true }));
  }

  restore(): void {
    for (const name of readdirSync(this.host.folder)) {
      rmSync(join(this.host.folder, name), { recursive: true });
    }
    cpSync(this.#copy, this.host.folder, COPYING);
  }
}
