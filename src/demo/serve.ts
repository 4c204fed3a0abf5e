import 'reflect-metadata';
import { resolve } from 'node:path';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import { systemRandom } from '#platform/clock/random.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import type { CompositionRoot } from '../app.module.js';
import { createApp } from '../create-app.js';
import { BrowserKey } from './browser-key/browser-key.js';
import { BrowserKeyModule } from './browser-key/browser-key.module.js';
import { dataDirOf, demoConfiguration, LOCAL_PROVIDER } from './configuration.js';
import { startDemoIdentityProvider } from '@svc/stand-ins/identity-provider';
import { freePort } from '@svc/stand-ins/loopback-server';
import { readDemoData, writeDemoData, type DemoData } from './demo-data.js';
import { READY_PEOPLE } from './people/people.js';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import type { StartFacts } from './start-checks.js';
import { Tour } from './tour/tour.js';
import { TourModule } from './tour/tour.module.js';

/** The running demo. */
export interface RunningDemo {
  readonly baseUrl: string;
  readonly dataDir: string;
  /**
   * A software key; this run trusts the root certificate of its attestation. Software keys that are
   * made from it have the same root.
   */
  readonly vendor: SoftwareKey;
  /** The slug of the demo's own identity provider; undefined if the environment names others. */
  readonly provider: string | undefined;
  /**
   * Prepares the tour of the pages. @returns the reason why the tour is not available, or undefined
   */
  prepareTour(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Starts the demo. It is the production application with two differences. It also trusts the root
 * certificates of this run's software keys and of `--attestation-root`. And it serves the software
 * key of the pages and the tour.
 *
 * @throws Error when it cannot start, for example with a production database
 */
export async function serveDemo({
  environment,
  outsideRoots,
  port,
}: StartFacts): Promise<RunningDemo> {
  const dataDir = resolve(dataDirOf(environment));
  const data = new StoredData(dataDir);
  const provider = await localProvider(data.current);
  const { rootSecret, metricsToken = systemRandom.token() } = data.current;
  const secrets = { rootSecret, metricsToken };
  const { config, warnings } = demoConfiguration(environment, port, secrets, provider);
  const { baseUrl } = config.http;
  const logger = createLogger(config.log, 2); // the scenario prints to standard output
  for (const warning of warnings) logger.warn({ context: 'config' }, warning);

  const isLocal = environment['SVC_IDPS'] === undefined;
  const redirectUri = `${baseUrl}/oauth/callback`;
  const identityProvider = isLocal
    ? await startDemoIdentityProvider({ ...provider, redirectUri, people: READY_PEOPLE })
    : undefined;
  const vendor = new SoftwareKey({ state: data.current.softwareKey });
  const key = new BrowserKey(vendor, baseUrl, (softwareKey) => data.write({ softwareKey }));
  const slug = isLocal ? LOCAL_PROVIDER : undefined;
  const tour = new Tour({
    baseUrl,
    dataDir,
    key,
    provider: slug,
    metricsToken: config.metrics.bearerToken,
    applicationPort: data.current.application?.port ?? FIRST_APPLICATION_PORT,
    data: () => data.current,
    write: (changed) => data.write(changed),
  });
  const modules = [BrowserKeyModule.forRoot(key), TourModule.forRoot(tour)];
  const app = await createApp(config, logger, composition(vendor, outsideRoots, modules));
  // The data are written only now, because the start has checked that the database belongs to the
  // demo.
  data.write({ identityProviderPort: provider.port, metricsToken });
  await app.listen();
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGINT')); // the terminal was closed
  return {
    baseUrl,
    dataDir: dataDirOf(environment),
    vendor,
    provider: slug,
    prepareTour: () => tour.prepare(),
    async close() {
      await app.close();
      await identityProvider?.close();
    },
  };
}

/** The port of the demo application in the first run, if it is free. */
const FIRST_APPLICATION_PORT = 3002;

/** The stored data of the demo. Each change is written to the file at once. */
class StoredData {
  #current: DemoData;

  constructor(private readonly folder: string) {
    this.#current = readDemoData(folder);
  }

  get current(): DemoData {
    return this.#current;
  }

  write(changed: Partial<DemoData>): void {
    this.#current = { ...this.#current, ...changed };
    writeDemoData(this.folder, this.#current);
  }
}

function composition(
  vendor: SoftwareKey,
  outsideRoots: readonly TrustAnchor[],
  modules: CompositionRoot['modules'],
): CompositionRoot {
  return {
    composition: 'demo',
    ports: { https: 443, http: 80 }, // unused, because only TLS needs them
    // Both addresses are bound, because some browsers resolve `localhost` to ::1. If only 127.0.0.1
    // were bound, another program could listen at ::1.
    hosts: ['127.0.0.1', '::1'],
    timeouts: EDGE_TIMEOUTS,
    kmsLimits: KMS_LIMITS,
    trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(vendor.rootPem), ...outsideRoots],
    pageScripts: ['/static/demo/software-key.js'],
    modules,
  };
}

/**
 * Starts the identity provider of the demo. It uses the port of earlier runs if that is free, since
 * users and organizations belong to its issuer, which contains the port.
 */
async function localProvider({ identityProviderPort }: DemoData) {
  const port = await freePort(identityProviderPort).catch(() => freePort(0));
  return {
    port,
    issuer: `http://127.0.0.1:${port}`,
    clientId: 'svc-demo',
    clientSecret: systemRandom.token(),
  };
}
