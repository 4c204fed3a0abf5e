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
 * The milliseconds of one step of the wait for an answer. A pause of this process, such as one of
 * the machine, delays one step only. It does not make a server silent whose answer has arrived.
 */
const STEP = 250;

/**
 * The milliseconds after which an error means that the server is silent, as far as the finished
 * steps can tell. The search for a host takes up to {@link ANSWER_WITHIN} for a silent host.
 */
const LATE_AFTER = ANSWER_WITHIN - 2 * STEP;

/** The pool whose server is watched, and how the watch can tell that the server answers others. */
export interface WatchedPool {
  readonly pool: DataSource;
  /**
   * Begins to watch the open connections. Returns a function that returns true if one of them has
   * received anything since.
   */
  readonly watchReceipts: () => () => boolean;
}

/**
 * Opens a connection twice a second, and resolves with true as soon as the server neither answers
 * it nor sends anything on an open connection. Resolves with false if the signal is aborted before
 * that. An error that the server sends is an answer.
 */
export async function becomesSilent(
  { pool, watchReceipts }: WatchedPool,
  signal: AbortSignal,
  log: Pick<Logger, 'warn'>,
): Promise<boolean> {
  for (;;) {
    await systemClock.sleep(ASK_EVERY, { signal }).catch(() => undefined);
    if (signal.aborted) return false;
    const hasReceived = watchReceipts();
    if ((await answers(pool)) || hasReceived()) continue;
    if (signal.aborted) return false;
    log.warn('PostgreSQL does not answer: its connections are cut off, because the service stops');
    return true;
  }
}

async function answers(pool: DataSource): Promise<boolean> {
  const client = newDirectClient(pool);
  client.on('error', () => undefined); // the promise of the connection rejects as well
  let waited = 0;
  try {
    const connected = client.connect();
    for (; waited < SILENT_AFTER; waited += STEP) {
      if (await endsWithin(connected, STEP)) return true;
    }
    return false;
  } catch (error) {
    // A machine that vanished is reported late, by the driver, the search for a host or the system.
    const isLate = waited >= LATE_AFTER;
    const isOfServer = sqlStateOf(error) !== undefined && !(error instanceof NoFittingHost);
    return isOfServer || !isLate;
  } finally {
    endClient(client);
  }
}
