/** What binds a ceremony to the session it began in. */
export function sessionBinding(sessionId: string): string {
  return `session ${sessionId}`;
}

/** What binds a ceremony without a session to the browser it began in. */
export function browserBinding(secret: string): string {
  return `browser ${secret}`;
}
