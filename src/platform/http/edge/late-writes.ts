import type { ServerResponse } from 'node:http';

/**
 * Makes a response ignore later writes of its handler or of a guard, because an earlier step has
 * responded already. An ignored write reports success, so that the handler does not fail.
 */
export function swallowLateWrites(response: ServerResponse): void {
  const swallow = (...parameters: unknown[]) => {
    const done = parameters.at(-1);
    if (typeof done === 'function') queueMicrotask(() => void done());
    return response;
  };
  const silent = {
    setHeader: swallow,
    setHeaders: swallow,
    appendHeader: swallow,
    removeHeader: swallow,
    writeHead: swallow,
    flushHeaders: swallow,
    writeContinue: swallow,
    write: (...parameters: unknown[]) => Boolean(swallow(...parameters)),
    end: swallow,
  };
  Object.assign(response, silent);
  const { statusCode } = response; // the log and the metrics read the status that was sent
  Object.defineProperty(response, 'statusCode', {
    get: () => statusCode,
    set: (_late: number) => {
      // Express sets the status before it writes, so a change of the status must have no effect
      // either.
    },
  });
}
