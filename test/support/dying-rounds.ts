import { expect } from 'vitest';
import { runScript } from './child-script.js';
import type { DyingArgument } from './dying-replica.js';
import type { ReplicaAnswer } from './replica.js';

/**
 * The steps of sending one row of a queue to a receiver. Each step has the largest number of
 * requests with the row that the receiver may get if a replica dies at it.
 */
export const SENDING_STEPS: readonly (readonly [DyingArgument['step'], number])[] = [
  ['taken', 1],
  ['connected', 2],
  ['answered', 2],
  ['settled', 2],
];

/** The time limit for waiting until replicas have sent something. */
export const SLOW = { timeout: 60_000 };

/** The functions of one test, in whose rounds two replicas send queued rows. */
export interface Rounds {
  /** Queues the rows of a round. */
  readonly queue: () => Promise<void>;
  /** Counts the rows that wait. */
  readonly waiting: () => Promise<number>;
  /** Counts the requests that receivers got. */
  readonly received: () => number;
}

/**
 * Starts a replica that dies at a step, and queues rows in rounds until it is dead. One round may
 * not be enough, because the other replica may take all its rows.
 */
export async function roundsUntilDeath(argument: DyingArgument, rounds: Rounds): Promise<void> {
  const replica = runScript<ReplicaAnswer>('dying-replica.ts', argument);
  await replica.answer;
  const isDead = () => replica.signal() !== null;
  for (let n = 0; n < 20 && !isDead(); n += 1) {
    await rounds.queue();
    if (argument.step === 'connected') {
      // The other replica sends at most 16 requests at a time. So if receivers have more than 16
      // requests, this replica has sent some of them.
      await expect.poll(rounds.received, SLOW).toBeGreaterThan(16);
      await replica.kill();
    } else {
      await expect.poll(async () => isDead() || (await rounds.waiting()) === 0, SLOW).toBe(true);
    }
  }
  if (!isDead()) await replica.finish();
  await replica.gone;
  expect(replica.signal()).toBe('SIGKILL');
}

/** The number of equal results in a row after which the living replica is taken to send no row. */
const EQUAL_READS = 10;

/**
 * Makes the leases of a dead replica end, which would otherwise take 15 seconds. First it waits
 * until the set of leased rows stays the same. Until then the living replica sends rows, and
 * without its lease a row would be sent twice.
 *
 * @param query runs a statement and returns its rows
 */
export async function endLeases(
  query: (text: string) => Promise<object[]>,
  queue: 'logout_notices' | 'signal_events' | 'event_receivers',
): Promise<void> {
  const until = queue === 'event_receivers' ? 'leased_until' : 'next_attempt_at';
  const reads: string[] = [];
  const isStill = async () => {
    const leased = await query(
      `SELECT id, ${until} FROM ${queue} WHERE ${until} > now() ORDER BY id`,
    );
    reads.push(JSON.stringify(leased));
    return reads.length >= EQUAL_READS && new Set(reads.slice(-EQUAL_READS)).size === 1;
  };
  await expect.poll(isStill, SLOW).toBe(true);
  await query(`UPDATE ${queue} SET ${until} = ${until} - interval '15 seconds'`);
}
