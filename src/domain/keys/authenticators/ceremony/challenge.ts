import { systemRandom, type Random } from '#platform/clock/random.js';

/** The lifetime, in seconds, of the sealed state of a WebAuthn ceremony. */
export const CEREMONY_SECONDS = 300;

/**
 * The seconds for which a client waits for the user to touch the key. They are fewer than {@link
 * CEREMONY_SECONDS}, so that the sealed state is still valid when the client reports that it has
 * waited in vain.
 */
export const TOUCH_SECONDS = 270;

/** The bytes of a challenge. WebAuthn §13.4.3 demands at least 16. */
const CHALLENGE_BYTES = 32;

/**
 * Creates the random challenge of a ceremony. The key signs the challenge, so that the response is
 * valid for this ceremony only.
 */
export function newChallenge(random: Random = systemRandom): Buffer {
  return random.bytes(CHALLENGE_BYTES);
}
