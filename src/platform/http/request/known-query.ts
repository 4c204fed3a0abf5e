import type { Request } from 'express';
import { DomainError } from '#platform/errors/domain-error.js';
import type { RoutePolicy } from '#platform/http/routing/route-policy.js';
import { toSingleLine } from '#platform/text/single-line.js';

/**
 * The largest number of characters of a parameter's name that an error shows; a longer name is cut.
 */
const LONGEST_NAME = 64;

/**
 * Refuses a query parameter that a strict route does not know. If the route ignored a misspelled
 * filter, it would return everything.
 *
 * @throws DomainError invalid_request with the name of the parameter
 */
export function assertKnownQuery(
  { query }: Pick<Request, 'query'>,
  { query: rule, parameters }: Pick<RoutePolicy, 'query' | 'parameters'>,
): void {
  if (rule === 'open') return;
  const unknown = Object.keys(query).find((name) => !parameters.includes(name));
  if (unknown === undefined) return;
  const known =
    parameters.length === 0 ? 'no query parameters' : `only ${parameters.join(', ')} in the query`;
  const name = toSingleLine(unknown, LONGEST_NAME) ?? 'a parameter without a name';
  throw new DomainError('invalid_request', `${name}: unknown. This URL reads ${known}.`);
}
