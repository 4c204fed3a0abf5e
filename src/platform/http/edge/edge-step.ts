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
    const enter = (index: number): void => {
      const step = steps[index];
      if (step) step(request, response, () => enter(index + 1));
      else application(request, response);
    };
    enter(0);
  };
}
