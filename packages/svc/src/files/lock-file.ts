import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { statSync, utimesSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { CliFailure, errorCode } from '../program/failure.js';
import { now, randomId, sleep } from '../program/clock.js';
import { fileReason, fileRemedy } from '../program/system-errors.js';

/** The milliseconds between two attempts of a process that waits for a lock. */
const POLL = 25;
/**
 * The milliseconds between two renewals of the time of a lock file by the process that owns it. The
 * renewals show that the owner still runs.
 */
const RENEWAL = 5_000;
/**
 * The milliseconds without a renewal after which a process that waits for a lock takes it over. The
 * waiting process counts its own waits and reads no clock, because the clocks of two machines can
 * differ. A machine can also sleep with both processes.
 */
const ABANDONED = 30_000;
/** The number of milliseconds for which a process waits for the lock of another process. */
const LONGEST_WAIT = 120_000;

/**
 * Runs a function while this process owns a lock file. If the owner of the lock has died, its lock
 * is taken over.
 *
 * An owner that renews nothing for 30 seconds also loses its lock. The reason is that its process
 * id can belong to another process by now, for example after a restart of a container. So an owner
 * that the user stopped (Ctrl-Z) loses its lock, and so does one that blocks its event loop for so
 * long.
 */
export async function withLockFile<T>(path: string, act: () => Promise<T>): Promise<T> {
  const own = `${process.pid} ${randomId()} ${hostname()}\n`;
  await acquire(path, own);
  const renewal = setInterval(() => renew(path, own), RENEWAL);
  renewal.unref();
  try {
    return await act();
  } finally {
    clearInterval(renewal);
    if (ownerOf(path) === own) rmSync(path, { force: true });
  }
}

async function acquire(path: string, own: string): Promise<void> {
  let last: string | undefined;
  let unchanged = 0;
  for (let waited = 0; !create(path, own); waited += POLL) {
    const owner = ownerOf(path);
    const state = `${owner ?? ''} ${renewedAt(path) ?? ''}`;
    unchanged = state === last ? unchanged + POLL : 0;
    last = state;
    if (owner !== undefined && (hasDied(owner) || unchanged >= ABANDONED)) takeAway(path, owner);
    else if (waited >= LONGEST_WAIT) throw stillHeld(path, owner);
    else await sleep(POLL);
  }
}

/**
 * Creates the lock file. Returns false if another process has it.
 * @throws CliFailure if the folder cannot be used
 */
function create(path: string, own: string): boolean {
  const next = `${path}.${randomId()}`;
  try {
    const descriptor = openSync(next, 'wx', 0o600);
    writeSync(descriptor, own);
    closeSync(descriptor);
    // The lock file is written under another name and then linked. So it appears with its content,
    // and no process reads a lock without its owner.
    linkSync(next, path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    const message = `${dirname(path)} cannot be used: ${fileReason(error)}.`;
    throw new CliFailure(message, fileRemedy(error), 1, { cause: error });
  } finally {
    rmSync(next, { force: true });
  }
}

/**
 * Returns true if the owner of a lock file was a process on this machine and has ended. It is false
 * if another process has the process id of the owner now.
 */
function hasDied(owner: string): boolean {
  const { pid, host } = readOwner(owner);
  if (host !== undefined && host !== hostname()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return errorCode(error) === 'ESRCH';
  }
}

/** Returns the time of the last renewal of a lock file; undefined if it has just been removed. */
function renewedAt(path: string): number | undefined {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
}

/**
 * Parses the content of a lock file. `host` is undefined in a file of an earlier version of `svc`.
 */
function readOwner(owner: string): { readonly pid: number; readonly host: string | undefined } {
  const [pid, , host] = owner.trim().split(' ');
  return { pid: Number(pid), host };
}

function stillHeld(path: string, owner: string | undefined): CliFailure {
  const { pid, host } = readOwner(owner ?? '');
  if (host !== hostname()) {
    return new CliFailure('Another svc process does not finish.', `Remove the lock: rm '${path}'`);
  }
  const message = `The svc process ${pid} does not finish. It may wait for a touch or a PIN.`;
  return new CliFailure(message, 'End it, or run this again when it has ended.');
}

/**
 * Removes an abandoned lock file. If another process has just taken the lock over, the lock of that
 * process is put back.
 */
function takeAway(path: string, owner: string): void {
  const aside = `${path}.${randomId()}`;
  try {
    renameSync(path, aside);
    if (ownerOf(aside) !== owner) linkSync(aside, path);
  } catch {
    // Another process was faster. The next attempt sees the lock of that process.
  } finally {
    rmSync(aside, { force: true });
  }
}

function ownerOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Sets the time of the lock file, unless another process has taken the lock over. */
function renew(path: string, own: string): void {
  try {
    if (ownerOf(path) === own) utimesSync(path, now() / 1000, now() / 1000);
  } catch {
    // The lock file was removed by hand. The function that it guards goes on.
  }
}
