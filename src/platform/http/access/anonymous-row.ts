import type { IncomingMessage } from 'node:http';
import { callerOf } from './caller.js';

const ROW = Symbol('row');
const CLIENT = Symbol('authenticated client');
type Noted = IncomingMessage & { [ROW]?: true; [CLIENT]?: true };

/**
 * Notes that a request inserts a row into the database, or begins a sign-in that inserts one at its
 * end. The rate limit counts such requests if they are anonymous.
 */
export function noteRow(request: Noted): void {
  request[ROW] = true;
}

/**
 * Notes that an OAuth client that has an owner has authenticated, so that the rows of its request
 * are not anonymous.
 */
export function noteAuthenticatedClient(request: Noted): void {
  request[CLIENT] = true;
}

/**
 * Returns true if {@link noteRow} was called for a request that has neither a user nor an
 * authenticated client.
 */
export function hasAnonymousRow(request: Noted): boolean {
  return (
    request[ROW] === true && request[CLIENT] !== true && callerOf(request).userId === undefined
  );
}
