import type { IncomingMessage } from 'node:http';
import { newUuid } from '#platform/clock/random.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { keepHeader } from '#platform/http/contract/kept-headers.js';

/**
 * The header of FAPI (a security profile of OAuth) by which a client names each of its requests.
 * The service returns it, and writes its value on every log line and audit row of the request.
 */
export const INTERACTION_ID = 'x-fapi-interaction-id';

/**
 * The key under which the id is stored on its request. A WeakMap of all requests would cost time in
 * the garbage collector.
 */
const ID = Symbol('interaction id');
type Identified = IncomingMessage & { [ID]?: string };

/**
 * Matches the interaction ids that a client may choose. Their characters can neither forge nor
 * break a log line.
 */
const OWN_CHOICE = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Returns the interaction id of a request, by which its log lines are found. It is the id that the
 * client sent, if that has only allowed characters, or else a new UUIDv7. Every call for a request
 * returns the same id.
 */
export function interactionIdOf(request: Identified): string {
  return (request[ID] ??= sentId(request) ?? newUuid());
}

function sentId({ headers }: IncomingMessage): string | undefined {
  const sent = headers[INTERACTION_ID];
  return typeof sent === 'string' && OWN_CHOICE.test(sent) ? sent : undefined;
}

/** Sends the interaction id of a request to its client, in a header of the response. */
export const interactionId: EdgeStep = (request, response, next) => {
  keepHeader(response, INTERACTION_ID, interactionIdOf(request));
  next();
};
