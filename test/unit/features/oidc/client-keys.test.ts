import { describe, expect, it } from 'vitest';
import { keysProblem } from '../../../../src/features/oidc/protocol/clients/client-keys.js';

const rsaOf = (bits: number) => ({
  kty: 'RSA',
  n: Buffer.alloc(bits / 8, 0xff).toString('base64url'),
  e: 'AQAB',
});
const RSA = rsaOf(2048);
const EC = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' };
const ED = { kty: 'OKP', crv: 'Ed25519', x: 'x' };
const KEYED = { token_endpoint_auth_method: 'private_key_jwt' };
const FAPI = { ...KEYED, svc_profile: 'fapi2' };
const SECRET = { token_endpoint_auth_method: 'client_secret_basic' };
const SELF_SIGNED = { token_endpoint_auth_method: 'self_signed_tls_client_auth' };
const of = (...keys: readonly object[]) => ({ jwks: { keys } });

describe('the keys of a client', () => {
  it.each<readonly [string, object]>([
    ['none', SECRET],
    ['an address', { ...KEYED, jwks_uri: 'https://client.example/jwks' }],
    ['RSA', { ...KEYED, ...of(RSA) }],
    ['RSA of FAPI, for PS256', { ...FAPI, ...of(RSA) }],
    ['P-256', { ...FAPI, ...of({ ...EC, alg: 'ES256', use: 'sig' }) }],
    ['Ed25519', { ...FAPI, ...of({ ...ED, key_ops: ['verify'] }) }],
    ['one of several', { ...KEYED, ...of({ ...RSA, alg: 'RS512' }, EC) }],
    [
      'the registered algorithm',
      { ...KEYED, token_endpoint_auth_signing_alg: 'RS256', ...of(RSA) },
    ],
    ['for encryption alone, with a secret', { ...SECRET, ...of({ ...RSA, use: 'enc' }) }],
    ['a certificate', { ...SELF_SIGNED, ...of({ kty: 'EC', crv: 'P-384', x5c: ['MII'] }) }],
  ])('10.15 are accepted: %s', (_, metadata) => {
    expect(keysProblem(metadata)).toBeUndefined();
  });

  it.each<readonly [string, object]>([
    ['another curve', { ...KEYED, ...of({ ...EC, crv: 'P-384' }) }],
    ['RSA of 1024 bits', { ...KEYED, ...of(rsaOf(1024)) }],
    ['another algorithm', { ...KEYED, ...of({ ...RSA, alg: 'RS512' }) }],
    ['RS256 of FAPI', { ...FAPI, ...of({ ...RSA, alg: 'RS256' }) }],
    ['for encryption', { ...KEYED, ...of({ ...EC, use: 'enc' }) }],
    ['for signing', { ...KEYED, ...of({ ...EC, key_ops: ['sign'] }) }],
    [
      'not of the registered algorithm',
      { ...KEYED, token_endpoint_auth_signing_alg: 'ES256', ...of(RSA) },
    ],
    ['not of request objects', { ...SECRET, request_object_signing_alg: 'EdDSA', ...of(EC) }],
    [
      'of no use for request objects',
      { ...SECRET, require_signed_request_object: true, ...of({ ...RSA, use: 'enc' }) },
    ],
    ['of no use at all', { ...SECRET, ...of({ ...EC, crv: 'secp256k1' }) }],
    ['without a certificate', { ...SELF_SIGNED, ...of(EC) }],
  ])('10.15 are refused: %s', (_, metadata) => {
    expect(keysProblem(metadata)).toEqual(expect.any(String));
  });
});
