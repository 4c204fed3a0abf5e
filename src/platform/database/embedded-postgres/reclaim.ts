import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import { isDatabaseAway } from '#platform/database/statements/faults.js';
import { isLivePostmaster, readPostmasterPid, type Postmaster } from './postmaster-pid.js';
import { SOCKET_DIR_PREFIX } from './socket-directory.js';
import { takeSupervisorLock } from './supervisor-lock.js';

/** In milliseconds: a supervisor killed a moment ago still holds its lock until the server notices. */
const SURELY_TAKEN_AFTER = 2_000;
/** An orphan may have to finish its own recovery before it can be asked, and a checkpoint before it is gone. */
const GIVE_UP_AFTER = 120_000;
const LOOK_EVERY = 50;

/**
 * Sees to it that no server runs on a data directory, so that ours can start:
 *
 *     no pid file ─────────────────────────────────────────► free
 *     pid file, but no live server ── removed ─────────────► free
 *     live, its supervisor's lock is free ── SIGINT ───────► (look again)
 *     live, starting up or shutting down ── wait ──────────► (look again)
 *     live, its supervisor's lock stays taken ─────────────► refused
 *
 * The data stays as it is: a stopped server's by its own checkpoint, a killed one's by its write-ahead log.
 *
 * @param ourSocketDir stays when it is our own server that left its traces
 * @throws Error when another live process supervises the directory, or its server does not go away
 */
export async function reclaimDirectory(
  directory: string,
  ourSocketDir: string,
  log: Logger,
): Promise<void> {
  const begun = systemClock.monotonic();
  let left = await readPostmasterPid(directory);
  let interrupted = false;
  while (left && (await isLivePostmaster(left, directory))) {
    const state = interrupted ? 'not answering' : await stateOf(left);
    const waited = systemClock.monotonic() - begun;
    if (state === 'orphan') {
      log.warn(`Stopping the PostgreSQL (process ${left.pid}) that an earlier run left behind`);
      process.kill(left.pid, 'SIGINT'); // a fast shutdown: sessions are ended, data is written
      interrupted = true;
    } else if (waited > (state === 'supervised' ? SURELY_TAKEN_AFTER : GIVE_UP_AFTER)) {
      throw new Error(
        `Another process is using ${directory} (PostgreSQL is process ${left.pid}): stop it, or set ` +
          'SVC_DATA_DIR to another directory.',
      );
    }
    await systemClock.sleep(LOOK_EVERY);
    left = (await readPostmasterPid(directory)) ?? { ...left, pid: Number.NaN };
  }
  if (left) await removeTraces(directory, left.socketDir, ourSocketDir);
}

/** An orphan's session that takes the lock ends with the orphan. */
async function stateOf(postmaster: Postmaster): Promise<'orphan' | 'supervised' | 'not answering'> {
  try {
    return (await takeSupervisorLock(postmaster)) ? 'orphan' : 'supervised';
  } catch (error) {
    if (isDatabaseAway(error)) return 'not answering';
    throw error;
  }
}

/**
 * PostgreSQL overlooks a stale pid file, but not an empty one, nor one whose number another process of the same user
 * has by now.
 */
async function removeTraces(directory: string, socketDir: string, ours: string): Promise<void> {
  await rm(join(directory, 'postmaster.pid'), { force: true });
  if (socketDir === ours || !basename(socketDir).startsWith(SOCKET_DIR_PREFIX)) return;
  await rm(socketDir, { recursive: true, force: true });
}
