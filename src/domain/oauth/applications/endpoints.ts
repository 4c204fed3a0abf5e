import type { ApplicationType } from './registration.js';

/** The paths of the OAuth endpoints. The keys are the names in the library `oidc-provider`. */
export const ENDPOINT_PATHS = {
  authorization: '/oauth/authorize',
  pushed_authorization_request: '/oauth/par',
  token: '/oauth/token',
  device_authorization: '/oauth/device',
  code_verification: '/device',
  registration: '/oauth/register',
  introspection: '/oauth/introspect',
  revocation: '/oauth/revoke',
  userinfo: '/oauth/userinfo',
  jwks: '/oauth/jwks',
  end_session: '/oauth/logout',
} as const;

/** A URL of this service that a user enters into the settings of an application. */
export interface Endpoint {
  /** The name of the URL in the metadata of OpenID Connect Discovery (§3). */
  readonly name: string;
  readonly label: string;
  readonly address: string;
}

/** The endpoints, each with its name in the discovery metadata and its label on a page. */
const NAMED = {
  authorization: ['authorization_endpoint', 'Authorization endpoint'],
  token: ['token_endpoint', 'Token endpoint'],
  userinfo: ['userinfo_endpoint', 'Userinfo endpoint'],
  jwks: ['jwks_uri', 'Public keys (JWKS)'],
  end_session: ['end_session_endpoint', 'Logout endpoint'],
  pushed_authorization_request: [
    'pushed_authorization_request_endpoint',
    'Endpoint of pushed authorization requests',
  ],
  device_authorization: ['device_authorization_endpoint', 'Device authorization endpoint'],
  introspection: ['introspection_endpoint', 'Introspection endpoint'],
  revocation: ['revocation_endpoint', 'Revocation endpoint'],
} as const satisfies Partial<Record<keyof typeof ENDPOINT_PATHS, readonly [string, string]>>;

const SIGN_IN = ['authorization', 'token', 'userinfo', 'jwks', 'end_session'] as const;

/**
 * The endpoints that an application of each type calls. A cluster only verifies tokens, so it needs
 * the public keys alone.
 */
const CALLED: Readonly<Record<ApplicationType | 'kubernetes', readonly (keyof typeof NAMED)[]>> = {
  web: [...SIGN_IN, 'pushed_authorization_request', 'introspection', 'revocation'],
  spa: [...SIGN_IN, 'revocation'],
  native: [...SIGN_IN, 'device_authorization', 'revocation'],
  service: ['token', 'jwks', 'introspection', 'revocation'],
  kubernetes: ['jwks'],
};

/**
 * Returns the URLs that an application of a type needs. These are the issuer, the discovery
 * metadata, and the endpoints. Many applications read all other URLs from the metadata.
 */
export function endpointsOf(type: keyof typeof CALLED, issuer: string): Endpoint[] {
  return [
    { name: 'issuer', label: 'Issuer', address: issuer },
    {
      name: 'discovery',
      label: 'Discovery',
      address: `${issuer}/.well-known/openid-configuration`,
    },
    ...CALLED[type].map((endpoint) => {
      const [name, label] = NAMED[endpoint];
      return { name, label, address: issuer + ENDPOINT_PATHS[endpoint] };
    }),
  ];
}
