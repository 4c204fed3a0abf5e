import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import { endsWithin } from '#platform/clock/ends-within.js';
import { reasonOf } from '#platform/database/statements/faults.js';
import { openMigrationConnection, type DatabaseAddress } from './connection.js';
import { migrateInBackground } from './migrations.js';

/**
 * The pauses between two attempts to run the background migrations, in milliseconds: the first
 * pause, and the longest. Each pause is twice as long as the one before, up to the longest.
 */
const FIRST_PAUSE = 60_000;
const LONGEST_PAUSE = 3_600_000;

/**
 * The milliseconds for which a stop waits for the migration that it has ended. Only a server that
 * does not answer a new connection makes it wait for longer.
 */
const STOP_WITHIN = 2_000;

/**
 * Runs the background migrations of this version (indexes, and moves of rows) while the process
 * already serves, until all are complete. A failed migration is logged and tried again later,
 * because the service works without it, though it may be slower.
 *
 * @returns a function that ends the work. PostgreSQL may still complete the index that it is
 *   building; if it does not, a later process builds the index.
 */
export function startBackgroundMigration(
  address: DatabaseAddress,
  log: Logger,
): () => Promise<void> {
  const stopping = new AbortController();
  const ended = repeat(address, log, stopping.signal);
  return async () => {
    stopping.abort();
    await endsWithin(ended, STOP_WITHIN);
  };
}

async function repeat(address: DatabaseAddress, log: Logger, signal: AbortSignal): Promise<void> {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      await completeMigrations(address, log, signal);
      return;
    } catch (error) {
      if (signal.aborted) return;
      log.error(
        `The background migrations of this version (indexes, and moves of rows) are not complete, trying again: ${reasonOf(error)}`,
      );
    }
    try {
      await systemClock.sleep(pause, { signal });
    } catch {
      return; // the process stops
    }
  }
}

/**
 * Runs the background migrations of this version on a connection of its own, which is closed if the
 * signal is aborted.
 *
 * @throws Error if a migration fails, or the signal ends the work
 */
export async function completeMigrations(
  address: DatabaseAddress,
  log: Logger,
  signal?: AbortSignal,
): Promise<void> {
  const dataSource = await openMigrationConnection(address, log);
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= dataSource.destroy());
  const closeEarly = () => void close();
  signal?.addEventListener('abort', closeEarly, { once: true });
  try {
    if (signal?.aborted) return;
    await migrateInBackground(dataSource, log, signal && { signal });
  } finally {
    signal?.removeEventListener('abort', closeEarly);
    await close();
  }
}
