import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits for the end of some work, for a limited time.
 *
 * @param limit the longest wait in milliseconds
 * @returns true if the work ended in time; false if it goes on. A later fault of it is dropped.
 * @throws the error of the work if the work failed in time
 */
export async function endsWithin(work: Promise<unknown>, limit: number): Promise<boolean> {
  const waiting = new AbortController();
  const isOver = delay(limit, false, { signal: waiting.signal }).catch(() => false);
  const isEnded = work.then(() => true);
  isEnded.catch(() => undefined);
  try {
    return await Promise.race([isEnded, isOver]);
  } finally {
    waiting.abort();
  }
}
