import type { IncomingMessage } from 'node:http';
import type { PublishedIssuer } from '#domain/organizations/issuers/issuer-hosts.js';
import { tenantOf } from '#platform/http/request/tenant-host.js';

/** The claims that tokens for AWS contain. */
const CLAIMS = [
  'iss',
  'sub',
  'aud',
  'iat',
  'exp',
  'jti',
  'auth_time',
  'amr',
  'acr',
  'hardware_verified',
  'hardware_aaguid',
  'role_arn',
];

/**
 * Returns the issuer of the organization whose host a request names; undefined if it names the
 * service's own host.
 */
export function publishedIssuerOf(request: IncomingMessage): PublishedIssuer | undefined {
  return tenantOf(request) as PublishedIssuer | undefined;
}

/**
 * Returns the metadata of an organization's issuer: the members that verifiers of its tokens read,
 * and that AWS IAM demands. It names no endpoint for authorization or tokens, because the host has
 * none, although OpenID Connect Discovery §3 requires one.
 */
export function issuerMetadata({ origin }: PublishedIssuer) {
  return {
    issuer: origin,
    jwks_uri: `${origin}/oauth/jwks`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    claims_supported: CLAIMS,
  };
}
