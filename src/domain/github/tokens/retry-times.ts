/** The first and the longest pause between two tries to revoke a token, in milliseconds. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;

/**
 * The fraction of each pause that is random, so that replicas do not all try again at the same
 * moment.
 */
const JITTER = 0.5;

/**
 * Returns the time of the next try to revoke a token. Each pause is twice as long as the one
 * before, up to {@link LONGEST_PAUSE}, and half of it is random. It is not shorter than the pause
 * that GitHub asked for.
 *
 * @param attempts the number of tries so far, one or more
 * @param chance a random number from 0 to 1
 * @param told the pause in seconds that GitHub asked for; undefined if it asked for none
 */
export function nextTry(
  attempts: number,
  chance: number,
  now: number,
  told: number | undefined,
): Date {
  const pause = Math.min(FIRST_PAUSE * 2 ** Math.min(attempts - 1, 16), LONGEST_PAUSE);
  const spread = pause * (1 - JITTER + JITTER * chance);
  return new Date(now + Math.max(spread, (told ?? 0) * 1000));
}
