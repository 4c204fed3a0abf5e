import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';

/** The body of an error in one format, with its media type. */
export interface ErrorBody {
  readonly type: string;
  readonly content: string;
}

/**
 * Renders a problem document (RFC 9457). Its type is the URL of the page that explains the code.
 */
export function problemJson(error: DomainError, baseUrl: string): ErrorBody {
  const { title } = CATALOGUE[error.code];
  return {
    type: 'application/problem+json; charset=utf-8',
    content: JSON.stringify({
      type: `${baseUrl}/errors/${error.code}`,
      title,
      status: error.status,
      detail: error.detail,
      code: error.code,
      ...(error.cursor !== undefined && { cursor: error.cursor }),
    }),
  };
}

/**
 * Renders an error as the JSON of the OAuth endpoints: a code in `error`, and a text in
 * `error_description` (RFC 6749 §5.2).
 */
export function oauthJson(error: DomainError): ErrorBody {
  return {
    type: 'application/json; charset=utf-8',
    content: JSON.stringify({
      error: CATALOGUE[error.code].oauth,
      error_description: readable(error.detail),
    }),
  };
}

/**
 * Replaces the characters that an `error_description` must not have (RFC 6749 §5.2): all but
 * printable ASCII, and `"` and `\`.
 */
export function readable(detail: string): string {
  return detail.replace(/["\\]/g, "'").replace(/[^\u0020-\u007e]/g, '?');
}

/**
 * Renders an error of SCIM (RFC 7644 §3.12): `status` is a string, and the media type has no
 * charset (§8.1).
 */
export function scimJson(error: DomainError): ErrorBody {
  const row = CATALOGUE[error.code];
  return {
    type: 'application/scim+json',
    content: JSON.stringify({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
      status: String(error.status),
      ...('scimType' in row ? { scimType: row.scimType } : {}),
      detail: error.detail,
    }),
  };
}
