import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorBody } from './error-body.js';

/** An error of RFC 6749 §5.2, the voice of the OAuth endpoints that clients call. */
export function oauthJson(error: DomainError): ErrorBody {
  return {
    type: 'application/json; charset=utf-8',
    content: JSON.stringify({
      error: CATALOGUE[error.code].oauth,
      error_description: readable(error.detail),
    }),
  };
}

/** The characters an `error_description` may have (RFC 6749 §5.2): printable ASCII without `"` and `\`. */
export function readable(detail: string): string {
  return detail.replace(/["\\]/g, "'").replace(/[^\u0020-\u007e]/g, '?');
}
