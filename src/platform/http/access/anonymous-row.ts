import type { IncomingMessage } from 'node:http';
import { callerOf } from './caller.js';

const ROW = Symbol('row');
const CLIENT = Symbol('authenticated client');
type Noted = IncomingMessage & { [ROW]?: true; [CLIENT]?: true };

/**
 * Records that a request inserts a row into the database, or begins a sign-in that inserts a row at
 * its end. The rate limit counts such requests if they are anonymous, because their clients could
 * otherwise fill the database.
 */
export function noteRow(request: Noted): void {
  request[ROW] = true;
}

/**
 * Records on a request that an OAuth client that belongs to a user has authenticated. The rows of
 * that request then do not count as anonymous.
 */
export function noteAuthenticatedClient(request: Noted): void {
  request[CLIENT] = true;
}

/**
 * Returns true for a request that inserts a row and has neither a user nor an authenticated client.
 * The rate limit counts such requests.
 */
export function hasAnonymousRow(request: Noted): boolean {
  return (
    request[ROW] === true && request[CLIENT] !== true && callerOf(request).userId === undefined
  );
}
