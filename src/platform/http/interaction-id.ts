import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import { validate } from 'uuid';
import { newUuid } from '#platform/crypto/random.js';

/** FAPI's correlation header: accepted from the client, returned, and on every log line and audit row. */
export const INTERACTION_ID = 'x-fapi-interaction-id';

/** Kept on the request itself: a WeakMap of every request in flight is work for the garbage collector. */
const ID = Symbol('interaction id');
type Identified = IncomingMessage & { [ID]?: string };

/** The correlation id of a request that passed {@link interactionId}. */
export function interactionIdOf(request: Identified): string {
  return request[ID] ?? '';
}

/**
 * Gives the request its correlation id: the client's where it sent a UUID (FAPI 2.0 §5.6.1 asks for RFC 4122), a new
 * UUIDv7 otherwise, so that nothing a client writes can forge or break a log line.
 */
export function interactionId(request: Request, response: Response, next: NextFunction): void {
  const sent = request.get(INTERACTION_ID);
  const id = sent !== undefined && validate(sent) ? sent.toLowerCase() : newUuid();
  (request as Identified)[ID] = id;
  response.setHeader(INTERACTION_ID, id);
  next();
}
