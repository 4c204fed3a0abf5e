import { randomBytes } from 'node:crypto';

/** How long a ceremony may take, in seconds: so long its state is good, and so long a client waits for a touch. */
export const CEREMONY_SECONDS = 300;

/** WebAuthn §13.4.3 asks for 16 bytes at least. */
const CHALLENGE_BYTES = 32;

/** What a key signs in one ceremony and in no other. */
export function newChallenge(): Buffer {
  return randomBytes(CHALLENGE_BYTES);
}
