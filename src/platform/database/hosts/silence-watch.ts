import type { Logger } from '@nestjs/common';
import { systemClock } from '#platform/clock/clock.js';
import { endsWithin } from '#platform/clock/ends-within.js';
import { endClient, newDirectClient } from '#platform/database/statements/direct-client.js';
import { sqlStateOf } from '#platform/database/statements/faults.js';
import type { DataSource } from '#platform/database/statements/typeorm.js';
import { ANSWER_WITHIN } from './host-client.js';
import { NoFittingHost } from './host-search.js';

/** The milliseconds between two questions to the server. */
const ASK_EVERY = 500;

/**
 * The milliseconds that the server has to answer a new connection. It is shorter than the 5 s for
 * which a request waits for a connection, because the stop of the service waits for it.
 */
const SILENT_AFTER = 3_000;

/**
 * Opens a connection twice a second, and resolves with true as soon as the server does not answer.
 * Resolves with false if the signal is aborted before that. An error that the server sends is an
 * answer.
 */
export async function becomesSilent(
  pool: DataSource,
  signal: AbortSignal,
  log: Pick<Logger, 'warn'>,
): Promise<boolean> {
  for (;;) {
    await systemClock.sleep(ASK_EVERY, { signal }).catch(() => undefined);
    if (signal.aborted) return false;
    if (await answers(pool)) continue;
    if (signal.aborted) return false;
    log.warn('PostgreSQL does not answer: its connections are cut off, because the service stops');
    return true;
  }
}

async function answers(pool: DataSource): Promise<boolean> {
  const client = newDirectClient(pool);
  client.on('error', () => undefined); // the promise of the connection rejects as well
  const begun = systemClock.monotonic();
  try {
    return await endsWithin(client.connect(), SILENT_AFTER);
  } catch (error) {
    // A machine that vanished is reported late, by the driver, the search for a host or the system.
    const isLate = systemClock.monotonic() - begun >= ANSWER_WITHIN;
    const isOfServer = sqlStateOf(error) !== undefined && !(error instanceof NoFittingHost);
    return isOfServer || !isLate;
  } finally {
    endClient(client);
  }
}
