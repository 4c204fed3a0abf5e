import { expect } from 'vitest';
import { runScript } from './child-script.js';
import type { DyingArgument } from './dying-replica.js';
import type { ReplicaAnswer } from './replica.js';

/**
 * The steps of sending a row of a queue. Each has the largest number of times that a receiver gets
 * the row if a replica dies at this step.
 */
export const SENDING_STEPS: readonly (readonly [DyingArgument['step'], number])[] = [
  ['taken', 1],
  ['connected', 2],
  ['answered', 2],
  ['settled', 2],
];

/** The time limit of a poll that waits for replicas. */
export const SLOW = { timeout: 60_000 };

/** The functions for rounds in which two replicas send the rows that a test queues. */
export interface Rounds {
  /** Queues the rows of a round. */
  readonly queue: () => Promise<void>;
  /** Counts the rows that wait. */
  readonly waiting: () => Promise<number>;
  /** Counts the requests that receivers got. */
  readonly received: () => number;
}

/**
 * Starts a replica that dies at a step, and queues rows until it is dead. Several rounds may be
 * needed, because chance decides which replica takes which row, and a round may leave none for this
 * one.
 */
export async function roundsUntilDeath(argument: DyingArgument, rounds: Rounds): Promise<void> {
  const replica = runScript<ReplicaAnswer>('dying-replica.ts', argument);
  await replica.answer;
  const isDead = () => replica.signal() !== null;
  for (let n = 0; n < 20 && !isDead(); n += 1) {
    await rounds.queue();
    if (argument.step === 'connected') {
      // The other replica alone has at most 16 requests under way, so with more than 16 this one
      // has some too.
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

/**
 * The number of equal reads in a row after which the living replica is sure to have no row of the
 * queue.
 */
const EQUAL_READS = 10;

/**
 * Ends the leases of a replica that died, which would otherwise end only after 15 seconds. First it
 * waits until the leased rows stay the same, because the living replica still sends some of them,
 * and would send them twice.
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
