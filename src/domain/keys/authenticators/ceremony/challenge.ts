import { systemRandom, type Random } from '#platform/clock/random.js';

/** The lifetime of the state of a ceremony, in seconds. */
export const CEREMONY_SECONDS = 300;

/**
 * The seconds that a client waits for a touch. They are fewer than the lifetime of the state, so
 * that a client that gives up can still report that with the state.
 */
export const TOUCH_SECONDS = 270;

/** The bytes of a challenge. WebAuthn §13.4.3 demands at least 16. */
const CHALLENGE_BYTES = 32;

/**
 * Creates the challenge of a ceremony. The key signs it, so that its response is valid for this
 * ceremony only.
 */
export function newChallenge(random: Random = systemRandom): Buffer {
  return random.bytes(CHALLENGE_BYTES);
}
