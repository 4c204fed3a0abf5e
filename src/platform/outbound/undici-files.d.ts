/**
 * Declares the types of two files of `undici`, which the service imports. The library declares only
 * the types of its entry.
 */

declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici';

  export default Agent;
}

declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici';

  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData>;
}
