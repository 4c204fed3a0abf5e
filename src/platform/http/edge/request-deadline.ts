import type { IncomingMessage, ServerResponse } from 'node:http';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import type { EdgeTimeouts } from './edge-timeouts.js';
import { swallowLateWrites } from './late-writes.js';

/**
 * Gives every request so long and no longer, counted from its head. One that is not answered by then is answered 408, and
 * the connection ends (RFC 9110 §15.5.9); an answer that has begun and stalls is cut off with its connection. What a
 * handler that comes too late writes goes nowhere; its statements end by the database's own time-outs.
 */
export function requestDeadline(voices: ErrorVoices, timeouts: EdgeTimeouts): EdgeStep {
  const expire = (request: IncomingMessage, response: ServerResponse) => {
    if (response.headersSent) {
      request.socket.destroy();
      return;
    }
    response.setHeader('Connection', 'close');
    const detail = 'The request took too long and was cancelled. Try again.';
    voices.answer(new DomainError('timed_out', detail), request, response);
    swallowLateWrites(response);
    const cutOff = setTimeout(() => request.socket.destroy(), timeouts.linger);
    response.once('close', () => clearTimeout(cutOff));
  };
  return (request, response, next) => {
    const timer = setTimeout(expire, timeouts.request, request, response);
    response.once('close', () => clearTimeout(timer));
    next();
  };
}
