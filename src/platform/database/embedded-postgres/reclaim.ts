import { rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import { isDatabaseAway } from '#platform/database/statements/faults.js';
import { isLivePostmaster, readPostmasterPid, type Postmaster } from './postmaster-pid.js';
import { SOCKET_DIR_PREFIX } from './socket-directory.js';
import { takeSupervisorLock } from './supervisor-lock.js';

/**
 * The milliseconds after which a supervisor's lock that is still taken belongs to a live
 * supervisor. Until then, the lock may belong to a supervisor that was just killed, because the
 * server needs time to notice the end of its connection.
 */
const SURELY_TAKEN_AFTER = 2_000;
/**
 * The milliseconds to wait for a server whose supervisor was killed. The server may have to finish
 * its recovery before it responds, and a checkpoint before it ends.
 */
const GIVE_UP_AFTER = 120_000;
const LOOK_EVERY = 50;

/** The error if another live process uses the data directory of an embedded server. */
export class DirectoryInUse extends Error {
  override readonly name = 'DirectoryInUse';

  constructor(
    readonly directory: string,
    readonly pid: number,
  ) {
    super(
      `Another process is using ${directory} (PostgreSQL is process ${pid}): stop it, or set ` +
        'SVC_DATA_DIR to another directory.',
    );
  }
}

/**
 * Ensures that no server runs on a data directory, so that a new one can start:
 *
 *     no pid file ─────────────────────────────────────────► free
 *     pid file, but no live server ── removed ─────────────► free
 *     live, its supervisor's lock is free ── SIGINT ───────► (look again)
 *     live, starting up or shutting down ── wait ──────────► (look again)
 *     live, its supervisor's lock stays taken ─────────────► refused
 *
 * No data is lost: a stopped server wrote a checkpoint, and a killed one has its write-ahead log.
 *
 * @param ourSocketDir the socket directory of this process's server, which is kept
 * @throws Error if another live process supervises the directory, or its server does not go away
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
      throw new DirectoryInUse(directory, left.pid);
    }
    await systemClock.sleep(LOOK_EVERY);
    left = (await readPostmasterPid(directory)) ?? { ...left, pid: Number.NaN };
  }
  if (left) await removeTraces(directory, left.socketDir, ourSocketDir);
}

/**
 * Returns the state of the supervisor of a server by trying to take the supervisor's lock. If the
 * lock is free, the supervisor has ended. The session that took the lock stays open until the
 * server ends.
 */
async function stateOf(postmaster: Postmaster): Promise<'orphan' | 'supervised' | 'not answering'> {
  try {
    return (await takeSupervisorLock(postmaster)) ? 'orphan' : 'supervised';
  } catch (error) {
    if (isDatabaseAway(error)) return 'not answering';
    throw error;
  }
}

/**
 * Removes the files of an ended server. PostgreSQL ignores a stale pid file, but not an empty file,
 * or a file whose process id belongs to another process of the same user.
 */
async function removeTraces(directory: string, socketDir: string, ours: string): Promise<void> {
  await rm(join(directory, 'postmaster.pid'), { force: true });
  if (socketDir === ours || !basename(socketDir).startsWith(SOCKET_DIR_PREFIX)) return;
  await rm(socketDir, { recursive: true, force: true });
}
