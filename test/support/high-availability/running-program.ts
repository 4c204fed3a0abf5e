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
  /** The file to which the program writes both of its outputs. */
  readonly logFile: string;
  /** The user and group of the process, if another user than root must run it. */
  readonly uid?: number | undefined;
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * Returns the id of a process that the program has started without being its parent; undefined if
   * it does not run.
   */
  readonly detached?: () => number | undefined;
}

/** The programs that run. They are killed at the end of this process at the latest. */
const running = new Set<RunningProgram>();

process.on('exit', () => {
  for (const program of running) for (const pid of program.processes()) signal(pid, 'SIGKILL');
});

/**
 * A program with all processes that it has started, treated like one machine. It can be killed as
 * by a power cut, and frozen as a virtual machine is.
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

  /** Freezes every process of the program (SIGSTOP), which the program cannot notice. */
  freeze(): void {
    // A process may start another one before it is stopped itself. The second pass stops that one.
    for (let pass = 0; pass < 2; pass += 1) {
      this.#frozen = this.processes();
      for (const pid of this.#frozen) signal(pid, 'SIGSTOP');
    }
  }

  /** Lets the frozen processes run on (SIGCONT). */
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
