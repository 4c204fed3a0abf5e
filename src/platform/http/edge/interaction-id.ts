import type { IncomingMessage } from 'node:http';
import { validate } from 'uuid';
import { newUuid } from '#platform/crypto/random.js';
import type { EdgeStep } from './edge-step.js';
import { keepHeader } from './response-headers.js';

/** FAPI's correlation header: accepted from the client, returned, and on every log line and audit row. */
export const INTERACTION_ID = 'x-fapi-interaction-id';

/** Kept on the request itself: a WeakMap of every request in flight is work for the garbage collector. */
const ID = Symbol('interaction id');
type Identified = IncomingMessage & { [ID]?: string };

/**
 * The correlation id of a request: the client's where it sent a UUID (FAPI 2.0 §5.6.1 asks for RFC 4122), a new UUIDv7
 * otherwise, so that nothing a client writes can forge or break a log line. Settled by whoever asks first.
 */
export function interactionIdOf(request: Identified): string {
  return (request[ID] ??= sentId(request) ?? newUuid());
}

function sentId({ headers }: IncomingMessage): string | undefined {
  const sent = headers[INTERACTION_ID];
  return typeof sent === 'string' && validate(sent) ? sent.toLowerCase() : undefined;
}

/** Returns the request's correlation id to the client. */
export const interactionId: EdgeStep = (request, response, next) => {
  keepHeader(response, INTERACTION_ID, interactionIdOf(request));
  next();
};
