import type { IncomingMessage } from 'node:http';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/**
 * Refuses whatever a client expects beside `100-continue` (RFC 9110 §10.1.1). That one is answered by whoever reads the
 * body, right before, so that no client sends what an earlier guard refuses anyway.
 */
export function expectations(voices: ErrorVoices): EdgeStep {
  return (request, response, next) => {
    if (expectationOf(request) === undefined || expectsContinue(request)) next();
    else {
      const detail = 'The Expect header allows only 100-continue.';
      voices.answer(new DomainError('expectation_failed', detail), request, response);
    }
  };
}

/** Whether the client holds its body back until it is told to go on. */
export function expectsContinue(request: IncomingMessage): boolean {
  return expectationOf(request)?.toLowerCase() === '100-continue';
}

/** HTTP/1.0 knows no expectations, and a server must not answer them there. */
function expectationOf({ headers, httpVersion }: IncomingMessage): string | undefined {
  return httpVersion === '1.0' ? undefined : headers.expect;
}
