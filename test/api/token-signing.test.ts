import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { Logger } from '@nestjs/common';
import { SignJWT, calculateJwkThumbprint, decodeProtectedHeader, exportJWK } from 'jose';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TokenSigningKeysRepository } from '#domain/token-signing/token-signing-keys.repository.js';
import { TokenSigningKeys } from '#domain/token-signing/token-signing-keys.service.js';
import type { Config } from '#platform/config/config.js';
import { ConfigProblems } from '#platform/config/load-config.js';
import { startTestApp, type TestApp } from '../support/app.js';
import { addApplication, type Application } from '../support/applications.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { rows } from '../support/rows.js';

const OLD = 'the root secret of last year, retired';
const NEW = 'the root secret of this year, in use';
const PRIVATE_PARTS = ['d', 'p', 'q', 'dp', 'dq', 'qi'];

interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const newEc = (): KeyPair => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const newRsa = (): KeyPair => generateKeyPairSync('rsa', { modulusLength: 3072 });
const secretPem = ({ privateKey }: KeyPair) =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const publicPem = ({ publicKey }: KeyPair) =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString();
const thumbprint = async ({ publicKey }: KeyPair) =>
  calculateJwkThumbprint(await exportJWK(publicKey));

describe('the token-signing keys at start', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let warnings: unknown[];

  beforeEach(async () => {
    database = await createTestDatabase();
    dataSource = new DataSource({ type: 'postgres', url: database.url });
    await dataSource.initialize();
    warnings = [];
    vi.spyOn(Logger.prototype, 'warn').mockImplementation((line) => void warnings.push(line));
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await dataSource.destroy();
    await database.drop();
  });

  function start(
    secrets: Partial<Config['secrets']> = {},
    signingKeys: Partial<Config['oidc']['signingKeys']> = {},
  ): Promise<TokenSigningKeys> {
    const deviceCode = { expiresSeconds: 600, pollIntervalSeconds: 5 };
    return TokenSigningKeys.open(
      {
        oidc: { signingKeys: { ec: undefined, rsa: undefined, ...signingKeys }, deviceCode },
        secrets: { root: OLD, previousRoot: undefined, ...secrets },
      },
      dataSource,
      new TokenSigningKeysRepository(),
    );
  }

  const kept = () =>
    rows<{ kind: string; sealed: string }>(
      dataSource,
      'SELECT kind, sealed FROM token_signing_keys ORDER BY kind',
    );

  it('are made by the first start, one of each kind, and are the same at the next', async () => {
    const first = await start();
    const { keys } = first.privateJwks();
    expect(keys).toMatchObject([
      { kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig', kid: await thumbprintOf(keys[0]) },
      { kty: 'RSA', alg: 'RS256', use: 'sig', kid: await thumbprintOf(keys[1]) },
    ]);
    expect(Buffer.from(keys[1]?.n ?? '', 'base64url')).toHaveLength(3072 / 8);
    expect((await start()).privateJwks()).toEqual(first.privateJwks());
    const variables = ['SVC_OIDC_SIGNING_KEY', 'SVC_OIDC_RSA_SIGNING_KEY'];
    const lines = variables.map(
      (name) => `${name}: is not set; tokens are signed by a key kept in the database`,
    );
    expect(warnings).toEqual([...lines, ...lines]);
  });

  it('are in the database as JWEs alone', async () => {
    const keys = await start();
    const sealed = await kept();
    expect(sealed.map(({ kind }) => kind)).toEqual(['ec', 'rsa']);
    for (const row of sealed) {
      const header = decodeProtectedHeader(row.sealed);
      expect(header).toEqual({ alg: 'dir', enc: 'A256GCM' });
      for (const { d = '' } of keys.privateJwks().keys) expect(row.sealed).not.toContain(d);
    }
  });

  it('are the same for five starters at once', async () => {
    const started = await Promise.all(Array.from({ length: 5 }, () => start()));
    const ids = started.map((one) =>
      one
        .privateJwks()
        .keys.map(({ kid }) => kid)
        .join(),
    );
    expect(new Set(ids).size).toBe(1);
    expect(await kept()).toHaveLength(2);
  });

  it('outlive the root secret: a start with the previous one seals them anew', async () => {
    const before = await start();
    const changed = await start({ root: NEW, previousRoot: OLD });
    expect(changed.privateJwks()).toEqual(before.privateJwks());
    const alone = await start({ root: NEW });
    expect(alone.privateJwks()).toEqual(before.privateJwks());
    await expect(start({ root: OLD })).rejects.toThrow(ConfigProblems);
  });

  it('are sealed anew once by five starters at once', async () => {
    const before = await start();
    const secrets = { root: NEW, previousRoot: OLD };
    const started = await Promise.all(Array.from({ length: 5 }, () => start(secrets)));
    for (const one of started) expect(one.privateJwks()).toEqual(before.privateJwks());
    const sealed = await kept();
    await start(secrets);
    expect(await kept()).toEqual(sealed);
  });

  it('are never replaced: without the secret that sealed them there is no start', async () => {
    await start();
    const sealed = await kept();
    const failure: unknown = await start({ root: NEW }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ConfigProblems);
    expect(failure).toMatchObject({
      problems: [expect.stringMatching(/^SVC_JWT_SECRET: does not open the token-signing keys/)],
    });
    expect(await kept()).toEqual(sealed);
  });

  it('do not open in the place of another kind', async () => {
    await start();
    await dataSource.query(
      `UPDATE token_signing_keys SET sealed = (SELECT sealed FROM token_signing_keys WHERE kind = 'ec')`,
    );
    await expect(start()).rejects.toThrow(ConfigProblems);
  });

  it('that the operator sets are never written, and make no warning', async () => {
    const [ec, rsa] = [newEc(), newRsa()];
    const keys = await start({}, { ec: [secretPem(ec)], rsa: [secretPem(rsa)] });
    const ids = keys.privateJwks().keys.map(({ kid }) => kid);
    expect(ids).toEqual([await thumbprint(ec), await thumbprint(rsa)]);
    expect(await kept()).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it('are published once each, without a private part, those that sign before the others', async () => {
    const [ec, next, past, rsa] = [newEc(), newEc(), newEc(), newRsa()];
    const keys = await start(
      {},
      {
        ec: [secretPem(ec), publicPem(ec), publicPem(next), secretPem(past)],
        rsa: [secretPem(rsa), publicPem(rsa)],
      },
    );
    const published = keys.publicJwks().keys;
    const ids = await Promise.all([ec, next, past, rsa].map(thumbprint));
    expect(published.map(({ kid }) => kid)).toEqual(ids);
    expect(published.filter((jwk) => PRIVATE_PARTS.some((part) => part in jwk))).toEqual([]);
    expect(published.every(({ use }) => use === 'sig')).toBe(true);
    const signing = keys.privateJwks().keys.map(({ kid }) => kid);
    expect(signing).toEqual([ids[0], ids[2], ids[3]]);
  });
});

describe('a rotation of the token-signing keys', () => {
  const [present, next, past, stranger] = [newEc(), newEc(), newEc(), newEc()];
  const resource = 'https://orders.example/api';
  let app: TestApp;
  let application: Application;
  beforeAll(async () => {
    app = await startTestApp({
      environment: {
        SVC_OIDC_SIGNING_KEY: secretPem(present) + publicPem(next) + secretPem(past),
      },
    });
    application = await addApplication(
      app,
      {
        grant_types: ['client_credentials'],
        response_types: [],
        redirect_uris: [],
        svc_resource_scopes: 'orders:read',
        id_token_signed_response_alg: 'ES256',
      },
      { kind: 'first-party' },
    );
  });
  afterAll(() => app.close());

  it('publishes the keys to come and those of before, and nothing private', async () => {
    const { json } = await app.client().get('/oauth/jwks');
    const keys = json['keys'] as Record<string, string>[];
    const ids = await Promise.all([present, next, past].map(thumbprint));
    expect(keys.filter(({ kty }) => kty === 'EC').map(({ kid }) => kid)).toEqual(ids);
    expect(keys.filter(({ kty }) => kty === 'RSA')).toHaveLength(1);
    expect(keys.filter((jwk) => PRIVATE_PARTS.some((part) => part in jwk))).toEqual([]);
  });

  it('signs with the first key alone', async () => {
    const { clientId, clientSecret } = application;
    const { json, text } = await app.client().send('POST', '/oauth/token', {
      body: new URLSearchParams({ grant_type: 'client_credentials', resource }).toString(),
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}`,
      },
    });
    expect(text).toContain('access_token');
    const { kid } = decodeProtectedHeader(json['access_token'] as string);
    expect(kid).toBe(await thumbprint(present));
  });

  it.each([
    ['takes', 'the key of before', past, 200],
    ['refuses', 'a key it never had', stranger, 400],
  ])('%s a logout with an ID token of %s', async (_verb, _whose, pair, status) => {
    const hint = await new SignJWT({ sub: randomUUID() })
      .setProtectedHeader({ alg: 'ES256', kid: await thumbprint(pair) })
      .setIssuer(app.baseUrl)
      .setAudience(application.clientId)
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(pair.privateKey);
    const answer = await app.client().get(`/oauth/logout?id_token_hint=${hint}`);
    expect(answer.status).toBe(status);
  });
});

function thumbprintOf(jwk: Parameters<typeof calculateJwkThumbprint>[0] | undefined) {
  return jwk && calculateJwkThumbprint(jwk);
}
