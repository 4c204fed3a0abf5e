import 'reflect-metadata';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DynamicModule, Type } from '@nestjs/common';
import { PinoLogger } from 'nestjs-pino';
import { DataSource } from 'typeorm';
import { inject } from 'vitest';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '../../src/domain/keys/authenticators/attestation/trust-anchors.js';
import {
  FAILOVER_LIMITS,
  type FailoverLimits,
} from '../../src/domain/admin/database-failover/failover-limits.js';
import { createApp, type BuiltApplication } from '../../src/create-app.js';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { SoftwareKey, type SoftwareKeyOptions } from '@svc/stand-ins/software-key';
import type { Clock } from '../../src/platform/clock/clock.js';
import { CONFIG, type Config } from '../../src/platform/config/config.js';
import {
  configurationOf,
  type StoreTimes,
} from '../../src/platform/config-sources/read-configuration.js';
import { EDGE_TIMEOUTS, type EdgeTimeouts } from '../../src/platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS, type KmsLimits } from '../../src/platform/kms/call-policy.js';
import { createLogger } from '../../src/platform/telemetry/pino-options.js';
import type { ListenerPlan } from '../../src/listeners.service.js';
import { Client } from './client.js';
import { closing } from './closing.js';
import { keepDocument } from './traffic/keep-document.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { freePort } from './free-port.js';
import {
  furtherProviderEnvironment,
  providerEnvironment,
  TEST_CLIENT,
} from './provider-environment.js';

/** The options of a test application. */
export interface TestAppOptions {
  /** Environment variables that replace those of every test application. */
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * A database that the test created itself, so that it remains after the application was stopped.
   */
  readonly database?: Pick<TestDatabase, 'url'>;
  /** The ports and hosts of the TLS listeners; by default those of production. */
  readonly ports?: ListenerPlan['ports'];
  /** Modules with routes that the product does not have. */
  readonly modules?: readonly (Type | DynamicModule)[];
  /** Time limits of HTTP connections that are shorter than in production. */
  readonly timeouts?: Partial<EdgeTimeouts>;
  /** Time limits and retries for calls of KMS that are shorter than in production. */
  readonly kmsLimits?: Partial<KmsLimits>;
  /** Time limits for a failover of the database that are shorter than in production. */
  readonly failoverLimits?: Partial<FailoverLimits>;
  /** Time limits for the object store that are shorter than in production. */
  readonly storeTimes?: StoreTimes;
  /** The clock of the services and of the rate limits. The database uses its own clock. */
  readonly clock?: Clock;
  /** Attestation roots in PEM that are trusted in addition to the root of the software keys. */
  readonly attestationRoots?: readonly string[];
  /** Further trust anchors, such as attestation roots with known intermediate certificates. */
  readonly trustAnchors?: readonly TrustAnchor[];
  /** The slugs of further identity providers, beside the provider `demo`. */
  readonly furtherProviders?: readonly string[];
  /**
   * Returns further claims that the identity provider makes about the user with this e-mail
   * address.
   */
  readonly claims?: (email: string) => object;
}

/** A user with an enrolled key, and a client with the user's session. */
export interface EnrolledUser {
  readonly client: Client;
  readonly key: SoftwareKey;
}

/**
 * The real application with a real PostgreSQL. It listens on loopback, and `log` has its log lines.
 */
export interface TestApp {
  readonly baseUrl: string;
  readonly config: Config;
  readonly nest: BuiltApplication['nest'];
  readonly dataSource: DataSource;
  readonly log: string[];
  /**
   * Creates an HTTP client with its own cookies and its own IP address. So no other client uses up
   * its rate limits.
   */
  client(): Client;
  /** Creates a security key whose attestation the application trusts. */
  newKey(options?: SoftwareKeyOptions): SoftwareKey;
  /** Signs a user in, enrolls a key and logs in with it. */
  enrolled(email: string): Promise<EnrolledUser>;
  close(): Promise<void>;
}

/**
 * The log lines of each running application. Each list gets the lines of all of them, because
 * nestjs-pino writes every line of Nest to the first logger of the process.
 */
const openLogs = new Set<string[]>();
const sink = { write: (line: string) => openLogs.forEach((open) => open.push(line)) };

let hasFirstLogger = false;

/**
 * Makes the first logger of the process write every line from level `debug` upwards. The lines of
 * later applications go through this logger too, and one of them may need lines that the first does
 * not.
 */
function keepWholeLog(log: Config['log']): void {
  if (hasFirstLogger) return;
  hasFirstLogger = true;
  void new PinoLogger({ pinoHttp: { logger: createLogger({ ...log, filter: 'debug' }, sink) } });
}

/**
 * The vendor of the software keys of this process. All applications trust its root, because to make
 * a root takes as long as ten requests.
 */
let knownVendor: SoftwareKey | undefined;

function vendorOfKeys(): SoftwareKey {
  knownVendor ??= new SoftwareKey();
  return knownVendor;
}

/** Returns the port of the PgBouncer of this vitest project; undefined if the project has none. */
function poolerPort(): number | undefined {
  try {
    return inject('pooler');
  } catch {
    // A replica runs in a process of its own. There `inject` throws, because vitest is not running.
    return undefined;
  }
}

/**
 * Returns the settings of the database. If the project of this run has a PgBouncer, the application
 * uses it, and the database itself is behind the direct URL.
 */
function databaseSettings(url: string | undefined): Record<string, string | undefined> {
  const port = poolerPort();
  if (port === undefined || url === undefined) return { SVC_DATABASE_URL: url };
  const [, user, database] = /^postgres:\/\/([^@]+)@[^/]*\/([^?]+)/.exec(url) ?? [];
  return {
    SVC_DATABASE_URL: `postgres://${user}@127.0.0.1:${port}/${database}`,
    SVC_DATABASE_DIRECT_URL: url,
    SVC_DATABASE_POOLER: 'transaction',
  };
}

/**
 * Starts the production application, which here also trusts the attestation root of the software
 * keys of the tests.
 */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const ownDatabase = options.database ? undefined : await createTestDatabase();
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-test-'));
  const port = await freePort();
  const baseUrl = `http://localhost:${port}`;
  const startProvider = () =>
    startDemoIdentityProvider({
      ...TEST_CLIENT,
      redirectUri: `${options.environment?.['SVC_BASE_URL'] ?? baseUrl}/oauth/callback`,
      ...(options.claims ? { claims: options.claims } : {}),
    });
  const idp = await startProvider();
  const slugs = options.furtherProviders ?? [];
  const further = await Promise.all(slugs.map(startProvider));
  const environment = {
    SVC_BASE_URL: baseUrl,
    SVC_LISTEN_ADDR: `[::]:${port}`,
    ...databaseSettings((options.database ?? ownDatabase)?.url),
    SVC_DB_MAX_CONNECTIONS: '10',
    SVC_DATA_DIR: dataDir,
    ...providerEnvironment(idp.issuer),
    ...furtherProviderEnvironment(slugs, further),
    SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
    SVC_IDP_DEMO_NAME: 'the demo provider',
    RUST_LOG: 'debug',
    ...options.environment,
  };
  const { config, live } = await configurationOf(environment, options.storeTimes);
  const vendor = vendorOfKeys();
  const log: string[] = [];
  openLogs.add(log);
  keepWholeLog(config.log);
  const app = await createApp(config, createLogger(config.log, sink), {
    composition: 'test',
    ports: options.ports ?? { https: 443, http: 80 },
    hosts: [],
    timeouts: { ...EDGE_TIMEOUTS, ...options.timeouts },
    kmsLimits: { ...KMS_LIMITS, ...options.kmsLimits },
    failoverLimits: { ...FAILOVER_LIMITS, ...options.failoverLimits },
    trustAnchors: [
      ...PINNED_ROOTS,
      ...[vendor.rootPem, ...(options.attestationRoots ?? [])].map((pem) =>
        trustAnchorFromPem(pem),
      ),
      ...(options.trustAnchors ?? []),
    ],
    pageScripts: [],
    live,
    clock: options.clock,
    modules: options.modules ?? [],
  });
  await app.listen();
  await keepDocument(app.nest);

  const client = () => new Client(baseUrl);
  const newKey = (keyOptions: SoftwareKeyOptions = {}) =>
    new SoftwareKey({ ...keyOptions, vendor });
  return {
    baseUrl,
    config: app.nest.get<Config>(CONFIG),
    nest: app.nest,
    dataSource: app.nest.get(DataSource),
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
      await closing('the application', app.close(), () => log.slice(-40));
      openLogs.delete(log);
      const providers = Promise.all([idp, ...further].map((provider) => provider.close()));
      await closing('the identity providers', providers);
      await ownDatabase?.drop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
