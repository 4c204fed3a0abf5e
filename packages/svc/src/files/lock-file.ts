import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { statSync, utimesSync, writeSync } from 'node:fs';
import { hostname, uptime } from 'node:os';
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
 * The age in milliseconds at which the lock file of a process on another machine counts as
 * abandoned: the machine stopped, or the process ended without removing it.
 */
const ABANDONED = 30_000;
/** The largest number of milliseconds for which a process waits for the lock of another process. */
const LONGEST_WAIT = 120_000;

/**
 * Runs a function while this process owns a lock file. If the owner of the lock has died, its lock
 * is taken over.
 */
export async function withLockFile<T>(path: string, act: () => Promise<T>): Promise<T> {
  const own = `${process.pid} ${randomId()} ${hostname()}\n`;
  await acquire(path, own);
  const renewal = setInterval(() => touch(path), RENEWAL);
  renewal.unref();
  try {
    return await act();
  } finally {
    clearInterval(renewal);
    if (ownerOf(path) === own) rmSync(path, { force: true });
  }
}

async function acquire(path: string, own: string): Promise<void> {
  const deadline = now() + LONGEST_WAIT;
  while (!create(path, own)) {
    const owner = ownerOf(path);
    if (owner !== undefined && isAbandoned(path, owner)) takeAway(path, owner);
    else if (now() > deadline) throw stillHeld(path, owner);
    else await sleep(POLL);
  }
}

/** Creates the lock file. Returns false if another process has it. */
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
 * Returns true if the owner of a lock file has ended. An owner on this machine has the lock as long
 * as its process lives, because it may wait for a touch, or sleep with the machine, without a
 * renewal. The numbers of processes are given again after a restart of the machine.
 */
function isAbandoned(path: string, owner: string): boolean {
  const { pid, host } = readOwner(owner);
  try {
    const { mtimeMs } = statSync(path);
    const isOwnHost = host === hostname();
    if (isOwnHost && mtimeMs < now() - uptime() * 1000) return true;
    if (!isOwnHost && now() - mtimeMs > ABANDONED) return true;
    if (host !== undefined && !isOwnHost) return false;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return errorCode(error) === 'ESRCH';
  }
}

/** Parses the content of a lock file. Earlier versions of `svc` named no machine. */
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
  return new CliFailure(message, `End it. If it is no svc process, remove the lock: rm '${path}'`);
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
    // Another process was faster. The next attempt sees its lock.
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

function touch(path: string): void {
  try {
    utimesSync(path, now() / 1000, now() / 1000);
  } catch {
    // The lock file was removed by hand. The function ends normally all the same.
  }
}
