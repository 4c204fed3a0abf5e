import { CATALOGUE } from './catalogue.js';
import type { DomainError } from './domain-error.js';
import type { ErrorBody } from './error-body.js';

/** A SCIM error (RFC 7644 §3.12), the voice of `/scim/v2/*`: `status` is a string. */
export function scimJson(error: DomainError): ErrorBody {
  const row = CATALOGUE[error.code];
  return {
    type: 'application/scim+json; charset=utf-8',
    content: JSON.stringify({
      schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
      status: String(error.status),
      ...('scimType' in row ? { scimType: row.scimType } : {}),
      detail: error.detail,
    }),
  };
}
