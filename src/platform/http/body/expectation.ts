import type { IncomingMessage } from 'node:http';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';

/**
 * Refuses every value of the header `Expect` but `100-continue` (RFC 9110 §10.1.1). The reader of
 * the body sends `100 Continue` right before it reads, so that no client sends a body that a guard
 * refuses.
 */
export function expectations(errorRenderer: ErrorRenderer): EdgeStep {
  return (request, response, next) => {
    if (expectationOf(request) === undefined || expectsContinue(request)) next();
    else {
      const detail = 'The Expect header allows only 100-continue.';
      errorRenderer.render(new DomainError('expectation_failed', detail), request, response);
    }
  };
}

/** Returns true for a client that sends its body only after a response `100 Continue`. */
export function expectsContinue(request: IncomingMessage): boolean {
  return expectationOf(request)?.toLowerCase() === '100-continue';
}

/**
 * Returns the value of the header `Expect`; undefined without the header, and for a request of
 * HTTP/1.0, for which a server must ignore the header.
 */
function expectationOf({ headers, httpVersion }: IncomingMessage): string | undefined {
  return httpVersion === '1.0' ? undefined : headers.expect;
}
