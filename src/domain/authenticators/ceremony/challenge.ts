import { randomBytes } from 'node:crypto';

/** How long the state of a ceremony is good, in seconds. */
export const CEREMONY_SECONDS = 300;

/** How long a client waits for a touch, in seconds: when it gives up, the state is still good for telling so. */
export const TOUCH_SECONDS = 270;

/** WebAuthn §13.4.3 asks for 16 bytes at least. */
const CHALLENGE_BYTES = 32;

/** What a key signs in one ceremony and in no other. */
export function newChallenge(): Buffer {
  return randomBytes(CHALLENGE_BYTES);
}
