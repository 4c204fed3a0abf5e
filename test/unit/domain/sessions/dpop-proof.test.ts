import { randomUUID } from 'node:crypto';
import { exportJWK, SignJWT, UnsecuredJWT, type JWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  checkDpopProof,
  type ProvenRequest,
} from '../../../../src/domain/sessions/dpop/dpop-proof.js';
import { DpopKey } from '../../../support/dpop-key.js';

const ADDRESS = 'https://keys.example.org/v1/keys';
const TOKEN = 'an access token';
const NOW = 1_800_000_000;

describe('checkDpopProof (RFC 9449 §4.3)', () => {
  let key: DpopKey;
  beforeAll(async () => {
    key = await DpopKey.generate();
  });

  const check = (proof: string, different: Partial<ProvenRequest> = {}) =>
    checkDpopProof(proof, {
      method: 'GET',
      addresses: [ADDRESS],
      token: TOKEN,
      jkt: key.jkt,
      now: NOW,
      ...different,
    });
  const proof = (claims: object = {}, header = {}) =>
    key.proof('GET', ADDRESS, TOKEN, { claims: { iat: NOW, ...claims }, header });

  it('returns the id and the time of a valid proof', async () => {
    const jti = randomUUID();
    expect(await check(await proof({ jti }))).toEqual({ jti, iat: NOW });
  });

  it.each(['ES256', 'EdDSA', 'Ed25519', 'PS256'])('accepts %s', async (alg) => {
    const other = await DpopKey.generate(alg);
    const made = await other.proof('GET', ADDRESS, TOKEN, { claims: { iat: NOW } });
    expect(await check(made, { jkt: other.jkt })).toHaveProperty('jti');
  });

  it.each(['ES384', 'RS256', 'ES512'])('refuses %s', async (alg) => {
    const other = await DpopKey.generate(alg);
    const made = await other.proof('GET', ADDRESS, TOKEN, { claims: { iat: NOW } });
    expect(await check(made, { jkt: other.jkt })).toMatch(/malformed/);
  });

  it.each([
    [-300, true],
    [-301, false],
    [300, true],
    [301, false],
  ])('checks a proof made %i s from now: accepted %s', async (offset, accepted) => {
    const checked = await check(await proof({ iat: NOW + offset }));
    expect(typeof checked === 'object').toBe(accepted);
  });

  it.each([
    `${ADDRESS}?page=2`,
    `${ADDRESS}#part`,
    'https://keys.example.org:443/v1/keys',
    'HTTPS://KEYS.example.org/v1/./keys',
  ])('accepts %s as the same address (RFC 3986 §6.2)', async (htu) => {
    expect(await check(await proof({ htu }))).toHaveProperty('jti');
  });

  it.each([
    'http://keys.example.org/v1/keys',
    'https://keys.example.org:8443/v1/keys',
    'https://evil.example/v1/keys',
    'https://keys.example.org.evil.example/v1/keys',
    'https://keys.example.org@evil.example/v1/keys',
    'https://user@keys.example.org/v1/keys',
    'https://keys.example.org/v1/keys/',
    'https://keys.example.org/V1/keys',
    'https://keys.example.org/v1/keys/1',
    '/v1/keys',
    '',
    7,
    [ADDRESS],
    undefined,
  ])('refuses %j as another URL', async (htu) => {
    expect(await check(await proof({ htu }))).toMatch(/another URL/);
  });

  it.each([
    ['another method', { htm: 'POST' }, /another method/],
    ['a method in lower case', { htm: 'get' }, /another method/],
    ['no method', { htm: undefined }, /another method/],
    [
      'another token',
      { ath: 'fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo' },
      /another access token/,
    ],
    ['no token', { ath: undefined }, /another access token/],
    ['no id', { jti: undefined }, /no jti/],
    ['an empty id', { jti: '' }, /no jti/],
    ['a number for an id', { jti: 7 }, /no jti|malformed/],
    ['no moment', { iat: undefined }, /too far from now/],
    ['an expiry in the past', { exp: NOW - 1 }, /malformed/],
  ] as [string, object, RegExp][])('refuses %s', async (_name, claims, reason) => {
    expect(await check(await proof(claims))).toMatch(reason);
  });

  it('refuses a proof of another key than the key of the token', async () => {
    const { jkt } = await DpopKey.generate();
    expect(await check(await proof(), { jkt })).toMatch(/bound to another DPoP key/);
    expect(await check(await proof(), { jkt: '' })).toMatch(/bound to another DPoP key/);
  });

  it('refuses a signature by another key than the key in the proof', async () => {
    const stranger = await DpopKey.generate();
    expect(await check(await proof({}, { jwk: stranger.jwk }))).toMatch(/malformed/);
  });

  it('refuses a proof that carries its private key', async () => {
    const jwk = await exportJWK(key.privateKey);
    expect(jwk.d).toBeDefined();
    expect(await check(await proof({}, { jwk }))).toMatch(/malformed/);
  });

  it.each([
    ['of another type', { typ: 'JWT' }],
    ['of no type', { typ: undefined }],
    ['without a key', { jwk: undefined }],
    ['with a key that is none', { jwk: 'key' }],
    ['with an empty key', { jwk: {} }],
    ['with no point of the curve', { jwk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' } }],
    ['with a key of another kind', { jwk: { kty: 'OKP', crv: 'Ed25519', x: 'AA' } }],
    ['with a key id alone', { jwk: undefined, kid: 'key' }],
  ])('refuses a proof %s', async (_name, header) => {
    expect(await check(await proof({}, header))).toMatch(/malformed/);
  });

  it('refuses a proof that is unsigned, or signed with a secret that it carries', async () => {
    const secret = new Uint8Array(32);
    const symmetric = await new SignJWT({ jti: 'a', iat: NOW, htm: 'GET', htu: ADDRESS })
      .setProtectedHeader({
        typ: 'dpop+jwt',
        alg: 'HS256',
        jwk: { kty: 'oct', k: Buffer.from(secret).toString('base64url') } as JWK,
      })
      .sign(secret);
    expect(await check(symmetric)).toMatch(/malformed/);
    const unsigned = new UnsecuredJWT({ jti: 'a', iat: NOW }).encode();
    expect(await check(unsigned)).toMatch(/malformed/);
  });

  it.each(['', '.', '..', 'a.b.c', 'e30.e30.e30', 'a.b.c.d.e', '\u0000'])(
    'refuses %j as malformed',
    async (text) => {
      expect(await check(text)).toMatch(/malformed/);
    },
  );

  it('accepts each of several addresses of the service', async () => {
    const addresses = ['https://keys.example.org:8443/v1/keys', ADDRESS];
    expect(await check(await proof(), { addresses })).toHaveProperty('jti');
  });
});
