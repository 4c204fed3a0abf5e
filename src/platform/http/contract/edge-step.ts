import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

/** One thing that every request meets before the application: it calls `next`, or answers itself. */
export type EdgeStep = (
  request: IncomingMessage,
  response: ServerResponse,
  next: () => void,
) => void;

/**
 * The steps in their order, and the application behind them. They stand before Express, which answers by itself what
 * its router cannot read.
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
