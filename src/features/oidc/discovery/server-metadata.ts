import type { Config } from '#platform/config/config.js';
import { OIDC_SCOPES } from '../protocol/scopes.js';

/** The metadata of an authorization server (RFC 8414 §2). */
export interface ServerMetadata {
  request_uri_parameter_supported: boolean;
  require_request_uri_registration?: boolean;
  response_modes_supported: string[];
  grant_types_supported: string[];
  scopes_supported: string[];
  [name: string]: unknown;
}

/** The endpoints that accept a client certificate (RFC 8705 §5). */
const MUTUAL_TLS_ENDPOINTS: ReadonlySet<string> = new Set([
  'token_endpoint',
  'revocation_endpoint',
  'introspection_endpoint',
  'device_authorization_endpoint',
  'registration_endpoint',
  'userinfo_endpoint',
  'pushed_authorization_request_endpoint',
]);

/**
 * Corrects the metadata that the OAuth library writes. It adds features that this server implements
 * itself, and removes those that no client can use.
 */
export function correctDiscovery(document: ServerMetadata, http: Config['http']): void {
  document.request_uri_parameter_supported = true;
  document.require_request_uri_registration = true;
  document.response_modes_supported = document.response_modes_supported.filter(
    (mode) => !mode.startsWith('form_post'),
  );
  document.grant_types_supported = document.grant_types_supported.filter(
    (grant) => grant !== 'refresh_token',
  );
  document.scopes_supported = [...OIDC_SCOPES]; // our other scopes are for svc-cli only
  document['backchannel_logout_supported'] = true;
  document['backchannel_logout_session_supported'] = true;
  for (const endpoint of ['introspection', 'revocation']) {
    for (const subject of ['methods', 'signing_alg_values']) {
      document[`${endpoint}_endpoint_auth_${subject}_supported`] =
        document[`token_endpoint_auth_${subject}_supported`];
    }
  }
  if (http.tls) document['mtls_endpoint_aliases'] = mutualTlsAliases(document, http);
}

/** Returns the URLs of the endpoints at the mutual-TLS listener (RFC 8705 §5). */
function mutualTlsAliases(
  document: ServerMetadata,
  { baseUrl, mtls }: Config['http'],
): Record<string, string> {
  const { hostname, origin } = new URL(baseUrl);
  const listener = `https://${hostname}:${mtls.port}`;
  const endpoints = Object.entries(document).filter(([name]) => MUTUAL_TLS_ENDPOINTS.has(name));
  return Object.fromEntries(
    endpoints.map(([name, value]) => [name, String(value).replace(origin, listener)]),
  );
}
