import type { IncomingMessage } from 'node:http';
import { callerOf } from './caller.js';

const ROW = Symbol('row');
const CLIENT = Symbol('authenticated client');
type Noted = IncomingMessage & { [ROW]?: true; [CLIENT]?: true };

/** Notes that a request writes a row, or begins a sign-in that writes one at its end. */
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

/** Returns true if a request wrote a row without a user or an authenticated client. */
export function hasAnonymousRow(request: Noted): boolean {
  return (
    request[ROW] === true && request[CLIENT] !== true && callerOf(request).userId === undefined
  );
}
