import { CATALOGUE } from '#platform/errors/catalogue.js';
import type { DomainError } from '#platform/errors/domain-error.js';
import type { ErrorBody } from './error-body.js';

/** A SCIM error (RFC 7644 §3.12), as `/scim/v2/*` answers: `status` is a string, and the media type has no charset (§8.1). */
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
