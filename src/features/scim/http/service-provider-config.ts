import { SERVICE_PROVIDER_CONFIG_URN } from '../language/scim-language.js';
import { MOST_OPERATIONS } from '../bulk/bulk-request.js';
import { SCIM } from './resource-endpoint.js';
import { MOST_RESULTS, USUAL_COUNT } from '../query/scim-query.js';

/**
 * Describes the features of the service (RFC 7643 §5, RFC 9865 §4).
 *
 * @param base the base URL of the SCIM service
 */
export function serviceProviderConfig(base: string): object {
  return {
    schemas: [SERVICE_PROVIDER_CONFIG_URN],
    patch: { supported: true },
    bulk: {
      supported: true,
      maxOperations: MOST_OPERATIONS,
      maxPayloadSize: SCIM.body.max,
    },
    filter: { supported: true, maxResults: MOST_RESULTS },
    changePassword: { supported: false },
    sort: { supported: true },
    etag: { supported: true },
    pagination: {
      cursor: true,
      index: true,
      defaultPaginationMethod: 'index',
      defaultPageSize: USUAL_COUNT,
      maxPageSize: MOST_RESULTS,
    },
    authenticationSchemes: [
      {
        type: 'oauthbearertoken',
        name: 'SCIM token',
        description: 'A token that an admin of the organization made, as a Bearer token.',
        specUri: 'https://www.rfc-editor.org/rfc/rfc6750',
        primary: true,
      },
    ],
    meta: {
      resourceType: 'ServiceProviderConfig',
      location: `${base}/ServiceProviderConfig`,
    },
  };
}
