import type { IncomingMessage } from 'node:http';
import { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorVoices } from '#platform/http/errors/error-renderer.service.js';
import type { EdgeStep } from '#platform/http/contract/edge-step.js';
import { requestPath } from '#platform/http/contract/request-path.js';

/**
 * Refuses request targets that the router cannot read and would answer by itself (RFC 9112 §3.2): neither a path nor an
 * address of http, with a fragment, or with a percent sign that stands for nothing.
 */
export function requestTarget(voices: ErrorVoices): EdgeStep {
  return (request, response, next) => {
    if (isReadable(request)) next();
    else {
      const error = new DomainError('invalid_request', 'The address of the request is malformed.');
      voices.answer(error, request, response);
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
