import { hkdfSync } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, afterEach, expect, it } from 'vitest';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { openPrivateKey } from '../../src/domain/organizations/issuers/document-key/sealed-key.js';
import { openSecret } from '../../src/platform/crypto/sealed-secret.js';
import { KmsKeys } from '../../src/platform/kms/kms-keys.js';
import { startTestApp, type TestApp } from '../support/app.js';
import type { Client } from '../support/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { freePort } from '../support/free-port.js';
import {
  awsToken,
  claimedBy,
  issuerOf,
  jwksAt,
  requestToken,
  startDocumentKeyGround,
  startReplicaOf,
  verified,
  type DocumentKeyGround,
} from '../support/issuers.js';
import { startOwnMoto } from '../support/moto.js';
import { orgApi } from '../support/org-api.js';
import { requires } from '../support/programs.js';
import { providerEnvironment, TEST_CLIENT } from '../support/provider-environment.js';
import { rows } from '../support/rows.js';
import { startServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

/** The error of Node if the GCM tag does not fit the key, the ciphertext or the additional data. */
const NOT_OPENED = /unable to authenticate data/;

const VARIABLE = 'SVC_DOCUMENT_KEY_KMS_KEY_ID';

interface KeyRow {
  readonly orgId: string;
  readonly label: string;
  readonly kid: string;
  readonly sealed: Buffer;
  readonly kms_key_id: string;
  readonly wrapped: Buffer;
}

requires('moto').describe('a database that is copied without the document key', () => {
  let ground: DocumentKeyGround;
  let app: TestApp;
  let ada: Client;
  let eve: Client;
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    app = await startTestApp({ environment: ground.environment });
    ({ client: ada } = await claimedBy(app, 'ada@a.example', { label: 'of-a', active: true }));
    ({ client: eve } = await claimedBy(app, 'eve@b.example', { label: 'of-b', active: true }));
    await orgApi(ada, 'POST', '/issuer/rotate', {});
    await awsToken(ada);
    await awsToken(eve);
  });
  afterAll(async () => {
    await app.close();
    await ground.close();
  });

  const keyRows = () =>
    rows<KeyRow>(
      app.dataSource,
      `SELECT y.org_id AS "orgId", y.label, y.kid, y.sealed, d.kms_key_id, d.wrapped
       FROM organization_issuer_keys y JOIN document_keys d ON d.id = y.document_key_id`,
    );

  /** Returns every row of every table as one text, with bytes in hexadecimal. */
  async function dump(): Promise<string> {
    const tables = await rows<{ name: string }>(
      app.dataSource,
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
    );
    expect(tables.length).toBeGreaterThan(25);
    const texts = tables.map(async ({ name }) => {
      const found = await rows<{ row: string }>(
        app.dataSource,
        `SELECT t::text AS row FROM ${name} t`,
      );
      return found.map(({ row }) => row).join('\n');
    });
    return (await Promise.all(texts)).join('\n');
  }

  /** Asks KMS to decrypt the wrapped data key of a row, with the context that the service uses. */
  async function dataKeyOf({ kms_key_id: keyId, wrapped }: KeyRow): Promise<Buffer> {
    const kms = await KmsKeys.open(app.config);
    const context = { deployment: 'localhost', purpose: 'svc document encryption key' };
    return kms.decryptDataKey(keyId, wrapped, context);
  }

  /**
   * Returns the texts by which a dump could contain bytes: hexadecimal, base64 and base64url
   * without padding.
   */
  const formsOf = (bytes: Buffer) =>
    (['hex', 'base64', 'base64url'] as const).map((form) =>
      bytes.toString(form).replace(/=+$/, ''),
    );

  it('has no private key, no part of one and no data key in any column', async () => {
    const text = await dump();
    const found = await keyRows();
    expect(found).toHaveLength(3);
    expect(text).not.toContain('PRIVATE KEY-----');
    expect(text).not.toMatch(/"(?:d|p|q|dp|dq|qi)"\s*:\s*"/);
    // how the PKCS#8 of an RSA key begins, in DER and hexadecimal
    expect(text).not.toMatch(/020100300d06092a864886f70d0101010500/);
    for (const row of found) {
      const dataKey = await dataKeyOf(row);
      const jwk = openPrivateKey(dataKey, row, row.sealed).export({ format: 'jwk' });
      const parts = (['d', 'p', 'q', 'dp', 'dq', 'qi'] as const).map((name) =>
        Buffer.from(String(jwk[name]), 'base64url'),
      );
      for (const secret of [dataKey, ...parts]) {
        for (const form of formsOf(secret)) expect(text.includes(form)).toBe(false);
      }
      expect(formsOf(Buffer.from(String(jwk.n), 'base64url')).some((n) => text.includes(n))).toBe(
        true,
      );
    }
    expect(app.log.join('')).not.toMatch(/"(?:d|p|q)":"|PRIVATE KEY-----/);
  });

  it('opens no key by the root secret, nor by any other value that it has', async () => {
    const { secrets } = app.config;
    const purposes = ['token signing key rsa', 'document key', 'issuer key', ''];
    for (const row of await keyRows()) {
      for (const sealed of [row.sealed, row.wrapped]) {
        for (const form of ['base64url', 'hex', 'utf8'] as const) {
          for (const purpose of purposes) {
            expect(await openSecret(secrets, purpose, sealed.toString(form))).toBeUndefined();
          }
        }
      }
      const guesses = [
        Buffer.from(secrets.root).subarray(0, 32),
        row.wrapped.subarray(0, 32),
        row.wrapped.subarray(-32),
        ...purposes.map((purpose) => derived(secrets.root, `svc sealed secret: ${purpose}`)),
      ];
      for (const guess of guesses) {
        expect(() => openPrivateKey(guess, row, row.sealed)).toThrow(NOT_OPENED);
      }
    }
  });

  it('opens no key in the place of another: rows cannot be swapped between organizations', async () => {
    const [one, other] = (await keyRows()).filter(
      (row, n, all) => n === all.findIndex(({ label }) => label === row.label),
    );
    if (!one || !other) throw new Error('two organizations have keys');
    const dataKey = await dataKeyOf(one);
    expect(await dataKeyOf(other)).toEqual(dataKey);
    for (const place of [
      { ...one, orgId: other.orgId },
      { ...one, label: other.label },
      { ...one, kid: other.kid },
    ]) {
      expect(() => openPrivateKey(dataKey, place, one.sealed)).toThrow(NOT_OPENED);
    }
    const changed = Buffer.from(one.sealed);
    changed.writeUInt8((changed.at(-1) ?? 0) ^ 1, changed.length - 1);
    expect(() => openPrivateKey(dataKey, one, changed)).toThrow(NOT_OPENED);
  });

  it('signs nothing by a row that was moved to another organization', async () => {
    const { client: mal } = await claimedBy(app, 'mal@c.example', { label: 'of-c', active: true });
    await rows(
      app.dataSource,
      `UPDATE organization_issuer_keys c SET sealed = a.sealed
       FROM organization_issuer_keys a WHERE c.label = 'of-c' AND a.label = 'of-b'`,
    );
    const refused = await requestToken(mal);
    expect([refused.status, refused.json.code]).toEqual([500, 'internal']);
    expect((await requestToken(eve)).status).toBe(200);
  });
});

function derived(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));
}

requires('moto').describe('a start on a database with an issuer', () => {
  let ground: DocumentKeyGround;
  let database: TestDatabase;
  let folder: string;
  beforeAll(async () => {
    ground = await startDocumentKeyGround();
    folder = await makeTemporaryDirectory();
  });
  afterAll(async () => {
    await ground.close();
    await removeDirectory(folder);
  });
  beforeEach(async () => {
    database = await createTestDatabase();
  });
  afterEach(() => database.drop());

  /**
   * Returns the environment of an application on the test's database, with some KMS keys of which
   * the first one wraps new document keys.
   */
  const under = (...kmsKeyIds: string[]) => ({
    ...ground.environment,
    [VARIABLE]: kmsKeyIds.join(','),
    SVC_SSH_CA_KEY_PATH: join(folder, database.name),
  });
  const open = (environment: Record<string, string>) => startTestApp({ database, environment });
  const failure = async (environment: Record<string, string>) => {
    const outcome = await open(environment).then(
      async (app) => {
        await app.close();
        return 'it started';
      },
      (error: unknown) => error,
    );
    return outcome;
  };

  it('is fatal without the document key, and names the variable; a released label needs none', async () => {
    const app = await open(under(ground.keyId));
    const { client: ada } = await claimedBy(app, 'ada@a.example', { label: 'of-a' });
    await app.close();
    expect(await failure({ ...under(), [VARIABLE]: '' })).toMatchObject({
      name: 'ConfigProblems',
      problems: [`${VARIABLE}: is required: an organization has an issuer`],
    });
    const again = await open(under(ground.keyId));
    await again.dataSource.query('UPDATE organization_issuers SET released_at = now()');
    await again.close();
    const without = await open({ ...under(), [VARIABLE]: '' });
    await without.close();
    expect(ada.cookie('svc_session')).toBeDefined();
  });

  it('ends the process of production with status 1 and one line', async () => {
    const port = await freePort();
    const idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `http://localhost:${port}/oauth/callback`,
    });
    const environment = {
      SVC_BASE_URL: `http://localhost:${port}`,
      SVC_LISTEN_ADDR: `127.0.0.1:${port}`,
      SVC_DATABASE_URL: database.url,
      SVC_DATA_DIR: join(folder, 'production'),
      RUST_LOG: 'error',
      ...providerEnvironment(idp.issuer),
    };
    const app = await open(under(ground.keyId));
    await app.dataSource.query(
      `WITH org AS (INSERT INTO organizations (id, name) VALUES (gen_random_uuid(), 'a.example') RETURNING id)
       INSERT INTO organization_issuers (label, org_id, claimed_at) SELECT 'of-a', id, now() FROM org`,
    );
    await app.dataSource.query("UPDATE deployment SET composition = 'production'");
    await app.dataSource.query('TRUNCATE ssh_authority');
    await app.close();
    const server = startServerProcess('main.js', environment, { cwd: folder });
    expect(await server.ended).toBe(1);
    expect(server.output().trim()).toBe(`${VARIABLE}: is required: an organization has an issuer`);
    await idp.close();
  });

  it('is fatal where no named key of KMS opens the document key', async () => {
    const [other, disabled] = [
      await ground.admin.create('SYMMETRIC_DEFAULT'),
      await ground.admin.create('SYMMETRIC_DEFAULT'),
    ];
    const app = await open(under(disabled));
    await claimedBy(app, 'ada@a.example', { label: 'of-a' });
    await app.close();
    expect(await failure(under(other))).toMatchObject({
      problems: [
        `${VARIABLE}: a document key of this database does not open: name the key of KMS that wrapped it, too`,
      ],
    });
    await ground.admin.disable(disabled);
    expect(await failure(under(disabled))).toMatchObject({
      problems: [`${VARIABLE}: the key is not enabled`],
    });
    const [row] = await rowsOf(database);
    expect(row).toMatchObject({ kms_key_id: disabled });
  });

  it('under another first key seals every key again, while a replica of before goes on', async () => {
    const next = await ground.admin.create('SYMMETRIC_DEFAULT');
    const before = await open(under(ground.keyId, next));
    const { client: ada } = await claimedBy(before, 'ada@a.example', {
      label: 'of-a',
      active: true,
    });
    const jwks = await jwksAt(before, 'of-a');
    const [old] = await rowsOf(database);
    const after = await startReplicaOf(before, await freePort(), {
      environment: under(next, ground.keyId),
    });
    const resealed = await rowsOf(database);
    expect(resealed).toHaveLength(1);
    expect(resealed[0]).toMatchObject({ kid: old?.kid, kms_key_id: next });
    expect(resealed[0]?.sealed).not.toEqual(old?.sealed);
    // The older replica has not used this private key before. It must fetch the new document key,
    // which did not exist at its start, to open the private key.
    await verified(await awsToken(ada), issuerOf(before, 'of-a'), jwks);
    await after.close();
    await before.close();
    const alone = await open(under(next));
    const again = alone.client();
    again.setCookie('svc_session', ada.cookie('svc_session') ?? '');
    await verified(await awsToken(again), issuerOf(alone, 'of-a'), await jwksAt(alone, 'of-a'));
    expect(await jwksAt(alone, 'of-a')).toEqual(jwks);
    const left = await rows(alone.dataSource, 'SELECT kms_key_id FROM document_keys');
    expect(left).toEqual([{ kms_key_id: next }]);
    await alone.close();
  });

  it('of 2 replicas at once makes one document key', async () => {
    const key = await ground.admin.create('SYMMETRIC_DEFAULT');
    const first = await open(under(key));
    await first.dataSource.query('DELETE FROM document_keys');
    const ports = [await freePort(), await freePort(), await freePort()];
    const replicas = await Promise.all(
      ports.map((port) => startReplicaOf(first, port, { environment: under(key) })),
    );
    expect(await rows(first.dataSource, 'SELECT kms_key_id FROM document_keys')).toHaveLength(1);
    for (const replica of replicas) await replica.close();
    await first.close();
  });

  it('goes on without KMS: what a start unwrapped signs, and makes new keys', async () => {
    const own = await startDocumentKeyGround(startOwnMoto);
    const environment = { ...own.environment, SVC_SSH_CA_KEY_PATH: join(folder, database.name) };
    const app = await open(environment);
    const { client: ada } = await claimedBy(app, 'ada@a.example', { label: 'of-a', active: true });
    await own.close();
    expect((await requestToken(ada)).status).toBe(200);
    expect((await orgApi(ada, 'POST', '/issuer/rotate', { emergency: true })).status).toBe(200);
    await verified(await awsToken(ada), issuerOf(app, 'of-a'), await jwksAt(app, 'of-a'));
    await app.close();
  });
});

/** Returns the sealed issuer keys of the database, each with the KMS key of its document key. */
async function rowsOf(database: TestDatabase) {
  const { DataSource } = await import('typeorm');
  const source = await new DataSource({ type: 'postgres', url: database.url }).initialize();
  try {
    return await rows<{ kid: string; sealed: Buffer; kms_key_id: string }>(
      source,
      `SELECT y.kid, y.sealed, d.kms_key_id
       FROM organization_issuer_keys y JOIN document_keys d ON d.id = y.document_key_id`,
    );
  } finally {
    await source.destroy();
  }
}
