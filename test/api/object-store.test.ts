import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  startDemoIdentityProvider,
  type DemoIdentityProvider,
} from '@svc/stand-ins/identity-provider';
import { openS3Object } from '../../src/platform/object-store/s3-object.js';
import { startConfigStore, type ConfigStore } from '../support/config-store.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { startFaultProxy, type Fault, type FaultProxy } from '../support/fault-proxy.js';
import { freePort } from '../support/free-port.js';
import { requires } from '../support/programs.js';
import { TEST_CLIENT } from '../support/provider-environment.js';
import { startSpanCollector } from '../support/span-collector.js';
import { startServerProcess } from '../support/server-process.js';
import { makeTemporaryDirectory, removeDirectory } from '../support/temporary-directory.js';

const SECRET = 'a root secret only this test knows';
const PLANTED = 'planted-value';

requires('moto').describe('the start with an object store', () => {
  let store: ConfigStore;
  let database: TestDatabase;
  let idp: DemoIdentityProvider;
  let folder: string;
  let port: number;
  let hanging: FaultProxy;
  /**
   * The failure of a start whose store never answers. It takes its time while the other tests run.
   */
  let neverAnswered: ReturnType<typeof failure>;

  beforeAll(async () => {
    store = await startConfigStore();
    hanging = await startFaultProxy(store.proxy.endpoint);
    hanging.fault = 'hang';
    database = await createTestDatabase();
    folder = await makeTemporaryDirectory();
    port = await freePort();
    idp = await startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `http://localhost:${port}/oauth/callback`,
    });
    neverAnswered = failure({ SVC_S3_CONFIG_ENDPOINT: hanging.endpoint });
  });
  afterAll(async () => {
    await hanging.close();
    await store.close();
    await idp.close();
    await database.drop();
    await removeDirectory(folder);
  });

  /** Returns a document with every setting that a start needs, except those of the database. */
  const document = () => ({
    base_url: `http://localhost:${port}`,
    listen_addr: `127.0.0.1:${port}`,
    jwt_secret: SECRET,
    idps: [
      {
        id: 'demo',
        type: 'oidc',
        issuer: idp.issuer,
        client_id: TEST_CLIENT.clientId,
        client_secret: TEST_CLIENT.clientSecret,
      },
    ],
  });
  const start = (environment: Record<string, string> = {}) =>
    startServerProcess(
      'main.js',
      {
        ...store.environment,
        SVC_DATABASE_URL: database.url,
        SVC_DATA_DIR: join(folder, 'data'),
        ...environment,
      },
      { cwd: folder },
    );
  const failure = async (environment: Record<string, string> = {}) => {
    const server = start(environment);
    return { status: await server.ended, output: server.output().trim() };
  };
  const during = async <T>(fault: Fault, act: () => Promise<T>): Promise<T> => {
    store.proxy.fault = fault;
    try {
      return await act();
    } finally {
      store.proxy.fault = 'none';
    }
  };

  it('runs the real process from the document, and warns of an unknown key', async () => {
    await store.put({ ...document(), rp_names: 'x', rp_name: 'from the document' });
    const server = start({ SVC_RP_NAME: 'from the environment', SVC_SESSION_HOURS: '2' });
    await server.printed(/is served on port/);
    const page = await fetch(`http://localhost:${port}/login`);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('from the document');
    server.signal('SIGTERM');
    expect(await server.ended).toBe(0);
    expect(server.output()).toContain(
      'object store: rp_names: is not a key of the document; did you mean rp_name?',
    );
    expect(server.output()).not.toContain(SECRET);
    expect(server.output()).not.toContain(TEST_CLIENT.clientSecret);
  });

  it('traces requests and statements where the document alone names a collector', async () => {
    const collector = await startSpanCollector();
    await store.put({ ...document(), otel_exporter_otlp_endpoint: collector.endpoint });
    const server = start();
    await server.printed(/is served on port/);
    expect((await fetch(`http://localhost:${port}/health/ready`)).status).toBe(200);
    server.signal('SIGTERM');
    expect(await server.ended).toBe(0);
    const names = collector.spans().map(({ name }) => name);
    await collector.close();
    expect(names).toContain('GET /health/ready');
    expect(names.some((name) => name.startsWith('pg'))).toBe(true);
  });

  it.each<readonly [string, () => object | string, string]>([
    [
      'malformed',
      () => `{"version": 1, "jwt_secret": "${PLANTED}`,
      'SVC_S3_CONFIG_KEY: the document is not JSON',
    ],
    [
      'of version 2',
      () => ({ ...document(), version: 2 }),
      'SVC_S3_CONFIG_KEY: the document must have "version": 1',
    ],
    [
      'forbidden keys',
      () => ({ ...document(), database_url: PLANTED }),
      'SVC_S3_CONFIG_KEY: the document may not set database_url; set its variable',
    ],
    [
      'a wrong setting',
      () => ({ ...document(), jwt_secret: PLANTED }),
      'object store: jwt_secret: must have at least 32 characters',
    ],
    [
      'more than 1 MiB',
      () => ({ ...document(), rp_name: PLANTED.repeat(90_000) }),
      'SVC_S3_CONFIG_KEY: is larger than 1 MiB',
    ],
  ])('fails in one line on a document that is or has: %s', async (_what, content, line) => {
    await store.put(content());
    expect(await failure()).toEqual({ status: 1, output: line });
  });

  it('fails in one line where the bucket, the document, the access or the credentials are absent', async () => {
    await store.put(document());
    const denied: Fault = { status: 403, body: '<Error><Code>AccessDenied</Code></Error>' };
    expect([
      await failure({ SVC_S3_CONFIG_BUCKET: 'no-such-bucket' }),
      await failure({ SVC_S3_CONFIG_KEY: 'no/such/key.json' }),
      await during(denied, failure),
      await failure({
        AWS_ACCESS_KEY_ID: '',
        AWS_SECRET_ACCESS_KEY: '',
        AWS_EC2_METADATA_DISABLED: 'true',
        HOME: folder,
      }),
      await failure({ SVC_S3_CONFIG_ENDPOINT: `http://127.0.0.1:${await freePort()}` }),
    ]).toEqual(
      [
        'SVC_S3_CONFIG_BUCKET: the bucket does not exist',
        'SVC_S3_CONFIG_KEY: the object does not exist',
        'SVC_S3_CONFIG_BUCKET: access is denied, or the object does not exist (status 403)',
        'SVC_S3_CONFIG_BUCKET: the environment has no AWS credentials',
        'SVC_S3_CONFIG_BUCKET: the object store cannot be reached (ECONNREFUSED)',
      ].map((output) => ({ status: 1, output })),
    );
  });

  it('fails in one line on a store that answers with an error, cuts or never answers', async () => {
    await store.put(document());
    const broken: Fault = { status: 500, body: PLANTED };
    expect([
      await during(broken, failure),
      await during('cut', failure),
      await neverAnswered,
    ]).toEqual(
      [
        'SVC_S3_CONFIG_BUCKET: the object store answered with status 500',
        'SVC_S3_CONFIG_BUCKET: the object store cannot be reached (ECONNRESET)',
        'SVC_S3_CONFIG_BUCKET: the object store took too long to answer',
      ].map((output) => ({ status: 1, output })),
    );
  });

  it('takes the endpoint of the SDK’s own variables, over https or on loopback alone', async () => {
    await store.put({ ...document(), jwt_secret: PLANTED });
    const { proxy } = store;
    const unset = { SVC_S3_CONFIG_ENDPOINT: '' };
    expect((await failure({ ...unset, AWS_ENDPOINT_URL: proxy.endpoint })).output).toBe(
      'object store: jwt_secret: must have at least 32 characters',
    );
    expect((await failure({ ...unset, AWS_ENDPOINT_URL_S3: 'http://s3.example' })).output).toBe(
      'AWS_ENDPOINT_URL_S3: must be https (http only for localhost)',
    );
    const place = { bucket: 'b', key: 'k', region: 'eu-central-1', extraCaCerts: [] };
    const plain = await openS3Object({ ...place, endpoint: 'http://192.0.2.1' });
    await expect(plain.read()).rejects.toThrow('must be reached by https');
  });
});
