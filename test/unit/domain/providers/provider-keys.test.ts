import { CompactSign, exportJWK, generateKeyPair } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import { ProviderKeys } from '#domain/providers/openid/provider-keys.js';

/** Creates a key of the provider. It has a `kid` if the provider's tokens state one. */
async function newKey(kid?: string) {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const named = kid === undefined ? {} : { kid };
  return {
    jwk: { ...(await exportJWK(publicKey)), ...named },
    token: () =>
      new CompactSign(Buffer.from('{}'))
        .setProtectedHeader({ alg: 'ES256', ...named })
        .sign(privateKey),
  };
}

describe('the keys of a provider', () => {
  let published: object[];
  let status: number;
  let requests: number;
  let now: number;
  let keys: ProviderKeys;
  beforeEach(() => {
    [published, status, requests, now] = [[], 200, 0, 0];
    keys = new ProviderKeys(
      { uri: 'https://idp.test/jwks', algorithms: ['ES256'] },
      {
        fetch: () => {
          requests += 1;
          return Promise.resolve(Response.json({ keys: published }, { status }));
        },
      },
      { monotonic: () => now },
    );
  });
  const verify = async (token: string) => {
    try {
      await keys.verify(token);
      return 'good';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it('10.22 are fetched once for many tokens, and again after five minutes', async () => {
    const key = await newKey('a');
    published = [key.jwk];
    const token = await key.token();
    expect(await Promise.all(Array.from({ length: 20 }, () => verify(token)))).toEqual(
      Array.from({ length: 20 }, () => 'good'),
    );
    now = 299_999;
    expect(await verify(token)).toBe('good');
    expect(requests).toBe(1);
    now = 300_000;
    expect(await verify(token)).toBe('good');
    expect(requests).toBe(2);
  });

  it('10.22 are fetched at once for an unknown key, by one request for twenty tokens', async () => {
    const [old, rotated] = [await newKey('old'), await newKey('new')];
    published = [old.jwk];
    expect(await verify(await old.token())).toBe('good');
    published = [rotated.jwk];
    const token = await rotated.token();
    const all = await Promise.all(Array.from({ length: 20 }, () => verify(token)));
    expect(new Set(all)).toEqual(new Set(['good']));
    expect(requests).toBe(2);
    expect(await verify(await old.token())).toBe('ERR_JWKS_NO_MATCHING_KEY');
  });

  it('10.22 are fetched at most once in five seconds because of unknown keys', async () => {
    const [known, unknown] = [await newKey('known'), await newKey('unknown')];
    published = [known.jwk];
    const token = await unknown.token();
    for (let tries = 0; tries < 5; tries += 1) {
      expect(await verify(token)).toBe('ERR_JWKS_NO_MATCHING_KEY');
    }
    expect(requests).toBe(2);
    now = 4_999;
    await verify(token);
    expect(requests).toBe(2);
    now = 5_000;
    published = [unknown.jwk];
    expect(await verify(token)).toBe('good');
    expect(requests).toBe(3);
  });

  it('10.22 without key ids are fetched again when a signature does not fit', async () => {
    const [old, rotated] = [await newKey(), await newKey()];
    published = [old.jwk];
    expect(await verify(await old.token())).toBe('good');
    published = [rotated.jwk];
    expect(await verify(await rotated.token())).toBe('good');
  });

  it('are not fetched again for a forged signature under a known key', async () => {
    const key = await newKey('a');
    published = [key.jwk];
    const forged = await newKey('a');
    expect(await verify(await forged.token())).toBe('ERR_JWS_SIGNATURE_VERIFICATION_FAILED');
    expect(requests).toBe(1);
  });

  it('report a fault of the provider when they cannot be fetched, also after an unknown key', async () => {
    const [known, unknown] = [await newKey('known'), await newKey('unknown')];
    status = 500;
    expect(await verify(await known.token())).toBe('upstream_unavailable');
    [published, status] = [[known.jwk], 200];
    expect(await verify(await known.token())).toBe('good');
    status = 500;
    expect(await verify(await unknown.token())).toBe('upstream_unavailable');
    expect(await verify(await known.token())).toBe('good');
  });
});
