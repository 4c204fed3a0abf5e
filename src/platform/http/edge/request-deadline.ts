import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import type { EdgeTimeouts } from './edge-timeouts.js';
import { swallowLateWrites } from './late-writes.js';

/**
 * For each response that has not ended, the function that moves its deadline to a number of
 * milliseconds from now.
 */
const EXTENSIONS = new WeakMap<ServerResponse, (milliseconds: number) => void>();

/**
 * Gives a response more time, counted from now. It is for routes with responses so large that a
 * slow connection cannot receive them within the normal time.
 */
export function extendDeadline(response: ServerResponse, milliseconds: number): void {
  EXTENSIONS.get(response)?.(milliseconds);
}

/**
 * Limits the time of every request, counted from its head. A request without a response at the end
 * of that time gets 408, and its connection is closed (RFC 9110 §15.5.9). A response that has begun
 * is cut off with its connection. Later writes of the handler are ignored, and the time limits of
 * the database end the statements of the handler.
 */
export function requestDeadline(errorRenderer: ErrorRenderer, timeouts: EdgeTimeouts): EdgeStep {
  const expire = (request: IncomingMessage, response: ServerResponse) => {
    if (response.headersSent) {
      request.socket.destroy();
      return;
    }
    response.setHeader('Connection', 'close');
    const detail = 'The request took too long and was cancelled. Try again.';
    errorRenderer.render(new DomainError('timed_out', detail), request, response);
    swallowLateWrites(response);
    const cutOff = setTimeout(() => request.socket.destroy(), timeouts.linger);
    response.once('close', () => clearTimeout(cutOff));
  };
  return (request, response, next) => {
    let timer = setTimeout(expire, timeouts.request, request, response);
    EXTENSIONS.set(response, (milliseconds) => {
      clearTimeout(timer);
      timer = setTimeout(expire, milliseconds, request, response);
    });
    response.once('close', () => {
      EXTENSIONS.delete(response);
      clearTimeout(timer);
    });
    next();
  };
}
