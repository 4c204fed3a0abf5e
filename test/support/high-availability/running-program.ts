import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isAlive, signal, withDescendants } from '../processes.js';

/** The options with which a program of the cluster starts. */
export interface ProgramStart {
  readonly file: string;
  readonly args: readonly string[];
  /** The working directory. */
  readonly folder: string;
  /** The file to which the program's standard output and error output go. */
  readonly logFile: string;
  /** The user id and group id of the process; by default those of the tests. */
  readonly uid?: number | undefined;
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * Returns the id of a process that the program started and that is not its child; undefined if it
   * does not run.
   */
  readonly detached?: () => number | undefined;
}

/** The programs that were started and not killed yet. The end of this process kills them. */
const running = new Set<RunningProgram>();

process.on('exit', () => {
  for (const program of running) for (const pid of program.processes()) signal(pid, 'SIGKILL');
});

/**
 * A program together with all processes that it has started. They can be killed at once as by a
 * power failure, and stopped at once as a virtual machine can be.
 */
export class RunningProgram {
  readonly #child: ChildProcess;
  readonly #detached: () => number | undefined;
  #frozen: readonly number[] = [];

  constructor(start: ProgramStart) {
    this.#detached = start.detached ?? (() => undefined);
    const log = openSync(start.logFile, 'a');
    this.#child = spawn(start.file, start.args, {
      cwd: start.folder,
      env: { PATH: process.env['PATH'] ?? '', LANG: 'C.UTF-8', ...start.environment },
      stdio: ['ignore', log, log],
      ...(start.uid === undefined ? {} : { uid: start.uid, gid: start.uid }),
    });
    closeSync(log);
    running.add(this);
  }

  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Returns the process ids of the program and of every process below it. */
  processes(): number[] {
    const detached = this.#detached();
    return [this.isRunning ? this.pid : undefined, detached]
      .filter((pid) => pid !== undefined)
      .flatMap(withDescendants);
  }

  /** Stops every process of the program (SIGSTOP), which the processes cannot notice. */
  freeze(): void {
    // A process may start another one before it is stopped itself. The second pass stops that one.
    for (let pass = 0; pass < 2; pass += 1) {
      this.#frozen = this.processes();
      for (const pid of this.#frozen) signal(pid, 'SIGSTOP');
    }
  }

  /** Continues the stopped processes (SIGCONT). */
  thaw(): void {
    for (const pid of this.#frozen) signal(pid, 'SIGCONT');
    this.#frozen = [];
  }

  /** Kills every process of the program with SIGKILL, as a power cut does. */
  async kill(): Promise<void> {
    const ended = this.isRunning ? once(this.#child, 'exit') : undefined;
    this.freeze();
    const all = this.#frozen;
    for (const pid of all) signal(pid, 'SIGKILL');
    await ended;
    while (all.some(isAlive)) await delay(5);
    running.delete(this);
  }
}
