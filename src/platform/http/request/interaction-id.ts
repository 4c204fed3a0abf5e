import type { IncomingMessage } from 'node:http';
import { newUuid } from '#platform/clock/random.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { keepHeader } from '#platform/http/contract/kept-headers.js';

/** FAPI's correlation header: accepted from the client, returned, and on every log line and audit row. */
export const INTERACTION_ID = 'x-fapi-interaction-id';

/** Kept on the request itself: a WeakMap of every request in flight is work for the garbage collector. */
const ID = Symbol('interaction id');
type Identified = IncomingMessage & { [ID]?: string };

/** The ids that a client may choose: nothing in one can forge or break a log line. */
const OWN_CHOICE = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * The correlation id of a request: the client's, as it was sent, where it has the characters of a token, and a new UUIDv7
 * otherwise. It is settled at the first call.
 */
export function interactionIdOf(request: Identified): string {
  return (request[ID] ??= sentId(request) ?? newUuid());
}

function sentId({ headers }: IncomingMessage): string | undefined {
  const sent = headers[INTERACTION_ID];
  return typeof sent === 'string' && OWN_CHOICE.test(sent) ? sent : undefined;
}

/** Returns the request's correlation id to the client. */
export const interactionId: EdgeStep = (request, response, next) => {
  keepHeader(response, INTERACTION_ID, interactionIdOf(request));
  next();
};
