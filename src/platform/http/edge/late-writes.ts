import type { ServerResponse } from 'node:http';

/**
 * For a response that was answered over the head of its handler: whatever the handler, or a guard, still does to it is
 * done to nothing, and succeeds.
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
  const { statusCode } = response; // as it was sent: the log and the metrics read it
  Object.defineProperty(response, 'statusCode', {
    get: () => statusCode,
    set: (_late: number) => {
      // Express sets it before it writes.
    },
  });
}
