/**
 * This file alone imports `undici`. The service uses its agents and its `request`, and imports only
 * the two files that have them. The entry of the library would also load `fetch`, WebSockets,
 * caches, proxies and mocks: 109 modules and 21 MiB instead of 30 modules and 10 MiB, in every
 * process (docs/performance.md).
 */
import type { Dispatcher } from 'undici';
import Agent from 'undici/lib/dispatcher/agent.js';
import requestBy from 'undici/lib/api/api-request.js';

export { Agent };

/** The options of a request without the origin and the path, which come from its URL. */
type RequestOptions = Omit<Dispatcher.RequestOptions, 'origin' | 'path'>;

/** Sends a request through a dispatcher, as the function `request` of undici's entry does. */
export function request(
  address: string | URL,
  { dispatcher, ...options }: RequestOptions & { readonly dispatcher: Dispatcher },
): Promise<Dispatcher.ResponseData> {
  const { origin, pathname, search } = new URL(address);
  return requestBy.call(dispatcher, { ...options, origin, path: `${pathname}${search}` });
}
