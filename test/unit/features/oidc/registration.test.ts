import { describe, expect, it } from 'vitest';
import {
  metadataOf,
  registrationOf,
} from '../../../../src/domain/oauth/applications/registration-metadata.js';
import { problemOf } from '../../../../src/features/oidc/applications/registration/registration-rules.js';
import {
  completed,
  type WantedRegistration,
} from '../../../../src/domain/oauth/applications/registration.js';

const CALLBACK = 'https://client.example/callback';
const WEB: WantedRegistration = { name: 'Web', type: 'web', redirect_uris: [CALLBACK] };
const jwks = { keys: [{ kty: 'EC' }] };

/** One registration of each kind. */
const WANTED: readonly WantedRegistration[] = [
  WEB,
  { ...WEB, type: 'spa' },
  { ...WEB, type: 'native' },
  {
    name: 'Television',
    type: 'native',
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
  },
  { name: 'Service', type: 'service', scopes: ['orders:read', 'orders:write'] },
  {
    ...WEB,
    grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:token-exchange'],
  },
  { ...WEB, grant_types: ['urn:ietf:params:oauth:grant-type:token-exchange'], redirect_uris: [] },
  { ...WEB, profile: 'fapi2', jwks },
  { ...WEB, profile: 'fapi2', auth_method: 'self_signed_tls_client_auth', jwks },
  {
    ...WEB,
    auth_method: 'tls_client_auth',
    tls_client_auth_subject_dn: 'CN=client,O=Example',
    sender_constraint: 'mtls',
  },
  {
    ...WEB,
    auth_method: 'private_key_jwt',
    jwks_uri: 'https://client.example/jwks',
    request_uris: ['https://client.example/request'],
    post_logout_redirect_uris: [CALLBACK],
    require_signed_request_object: true,
    response_mode: 'jwt',
    sender_constraint: 'dpop',
  },
];

describe('a registration', () => {
  it.each(WANTED.map((wanted) => [JSON.stringify(wanted), wanted] as const))(
    'is restored from its stored metadata: %s',
    (_, wanted) => {
      const registration = completed(wanted);
      expect(problemOf(registration)).toBeUndefined();
      const kept = JSON.parse(JSON.stringify(metadataOf(registration))) as Record<string, unknown>;
      expect(registrationOf(kept)).toEqual(registration);
      expect(kept).not.toHaveProperty('scope');
    },
  );

  it('of the FAPI profile binds tokens to the client certificate, or else to a DPoP key', () => {
    const fapi = (auth_method: WantedRegistration['auth_method']) =>
      completed({ ...WEB, profile: 'fapi2', auth_method }).sender_constraint;
    expect(fapi('tls_client_auth')).toBe('mtls');
    expect(fapi('self_signed_tls_client_auth')).toBe('mtls');
    expect(fapi('private_key_jwt')).toBe('dpop');
    expect(fapi(null)).toBe('dpop');
    expect(metadataOf(completed({ ...WEB, profile: 'fapi2' }))).toMatchObject({
      svc_profile: 'fapi2',
      require_pushed_authorization_requests: true,
      dpop_bound_access_tokens: true,
      token_endpoint_auth_method: 'private_key_jwt',
    });
  });

  it('grants only the grant type of its application type by default', () => {
    const grants = (['web', 'spa', 'native', 'service'] as const).map(
      (type) => completed({ name: 'n', type }).grant_types,
    );
    expect(grants).toEqual([
      ['authorization_code'],
      ['authorization_code'],
      ['authorization_code'],
      ['client_credentials'],
    ]);
  });
});
