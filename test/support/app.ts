import 'reflect-metadata';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { PINNED_ROOTS, trustAnchorFromPem } from '../../src/domain/authenticators/trust-anchors.js';
import { createApp } from '../../src/create-app.js';
import { startDemoIdentityProvider } from '../../src/demo/identity-provider.js';
import { SoftwareKey, type SoftwareKeyOptions } from '../../src/demo/software-key.js';
import type { Config } from '../../src/platform/config/config.js';
import { loadConfig } from '../../src/platform/config/load-config.js';
import { createLogger } from '../../src/platform/telemetry/pino-options.js';
import { Client } from './client.js';
import { createTestDatabase, type TestDatabase } from './database.js';

/** What a test may want otherwise. */
export interface TestAppOptions {
  /** Variables over those every test app has. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A database of the test's own making, which outlives the app. */
  readonly database?: TestDatabase;
  /** Claims the identity provider says of a person. */
  readonly claims?: (email: string) => object;
}

/** The real application on a real PostgreSQL, listening on loopback, its log kept. */
export interface TestApp {
  readonly baseUrl: string;
  readonly config: Config;
  readonly dataSource: DataSource;
  readonly log: string[];
  /** A new browser. */
  client(): Client;
  /** A new security key, whose attestation this app trusts. */
  newKey(options?: SoftwareKeyOptions): SoftwareKey;
  /** A browser whose person has enrolled a key and is logged in with it. */
  enrolled(email: string): Promise<{ client: Client; key: SoftwareKey }>;
  close(): Promise<void>;
}

/** Starts the tests' composition root: the production application, with the software keys' root trusted beside. */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const database = options.database ?? (await createTestDatabase());
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-test-'));
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const idp = await startDemoIdentityProvider({
    clientId: 'svc',
    clientSecret: 'the secret of the test client',
    redirectUri: `${baseUrl}/oauth/callback`,
    ...(options.claims ? { claims: options.claims } : {}),
  });
  const { config } = loadConfig({
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `[::]:${port}`,
    SVC_DATABASE_URL: database.url,
    SVC_DB_MAX_CONNECTIONS: '10',
    SVC_DATA_DIR: dataDir,
    SVC_JWT_SECRET: 'a root secret that only the tests know',
    SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
    SVC_IDPS: 'demo',
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_NAME: 'the demo provider',
    SVC_IDP_DEMO_ISSUER: idp.issuer,
    SVC_IDP_DEMO_CLIENT_ID: 'svc',
    SVC_IDP_DEMO_CLIENT_SECRET: 'the secret of the test client',
    RUST_LOG: 'debug',
    ...options.environment,
  });
  const vendor = new SoftwareKey();
  const log: string[] = [];
  const sink = { write: (line: string) => void log.push(line) };
  const app = await createApp(config, createLogger(config.log, sink), {
    composition: 'test',
    trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(vendor.rootPem)],
    pageScripts: [],
    modules: [],
  });
  await app.listen(port, config.http.listen.host);

  const client = () => new Client(baseUrl);
  const newKey = (keyOptions: SoftwareKeyOptions = {}) =>
    new SoftwareKey({ ...keyOptions, vendor });
  return {
    baseUrl,
    config,
    dataSource: app.get(DataSource),
    log,
    client,
    newKey,
    async enrolled(email) {
      const browser = client();
      const key = newKey();
      await browser.signIn(email);
      const answer = await browser.enroll(key);
      if (answer.status !== 200) throw new Error(`enrollment failed: ${answer.text}`);
      return { client: browser, key };
    },
    async close() {
      await app.close();
      await idp.close();
      if (!options.database) await database.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** A port nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return port;
}
