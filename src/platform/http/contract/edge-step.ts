import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

/**
 * A step that every request passes before it reaches Express. It calls `next`, or responds itself.
 */
export type EdgeStep = (
  request: IncomingMessage,
  response: ServerResponse,
  next: () => void,
) => void;

/**
 * Puts steps in front of an application of Express. The steps must run first, because Express
 * itself answers requests whose path it cannot read.
 */
export function requestEdge(steps: readonly EdgeStep[], application: RequestListener) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    let entered = 0;
    const next = (): void => {
      const step = steps[entered];
      entered += 1;
      if (step) step(request, response, next);
      else application(request, response);
    };
    next();
  };
}
