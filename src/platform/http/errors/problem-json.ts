import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorBody } from './error-body.js';

/** An RFC 9457 problem document, the voice of `/v1/*`, `/api/v1/*` and the WebAuthn JSON. */
export function problemJson(error: DomainError): ErrorBody {
  const { title } = CATALOGUE[error.code];
  return {
    type: 'application/problem+json; charset=utf-8',
    content: JSON.stringify({
      type: 'about:blank',
      title,
      status: error.status,
      detail: error.detail,
      code: error.code,
    }),
  };
}
