/** How long a ceremony may take, in seconds. */
export const STATE_TTL_SECONDS = 300;
/** WebAuthn §13.4.3 asks for 16 bytes at least. */
export const CHALLENGE_BYTES = 32;

/** What binds a ceremony to the session it began in. */
export function sessionBinding(sessionId: string): string {
  return `session ${sessionId}`;
}

/** What binds a ceremony without a session to the browser it began in. */
export function browserBinding(secret: string): string {
  return `browser ${secret}`;
}
