import type { IncomingMessage } from 'node:http';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorRenderer } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { requestPath } from '#platform/http/contract/request-path.js';

/**
 * Refuses request targets that the router cannot read and would answer by itself (RFC 9112 §3.2).
 * Such a target is neither a path nor an http URL, or has a fragment or a malformed
 * percent-encoding.
 */
export function requestTarget(errorRenderer: ErrorRenderer): EdgeStep {
  return (request, response, next) => {
    if (isReadable(request)) next();
    else {
      const error = new DomainError('invalid_request', 'The URL of the request is malformed.');
      errorRenderer.render(error, request, response);
    }
  };
}

function isReadable({ url = '', method }: IncomingMessage): boolean {
  if (url === '*') return method === 'OPTIONS';
  if (url.includes('#')) return false;
  const path = requestPath({ url });
  if (path === '*') return false;
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
