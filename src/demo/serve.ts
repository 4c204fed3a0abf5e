import 'reflect-metadata';
import { readFileSync } from 'node:fs';
import {
  PINNED_ROOTS,
  trustAnchorFromPem,
  type TrustAnchor,
} from '#domain/authenticators/attestation/trust-anchors.js';
import { readProcessEnvironment } from '#platform/config/environment.js';
import { systemRandom } from '#platform/clock/random.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import type { CompositionRoot } from '../app.module.js';
import { createApp } from '../create-app.js';
import type { DemoArguments } from './arguments.js';
import { BrowserKey } from './browser-key/browser-key.js';
import { BrowserKeyModule } from './browser-key/browser-key.module.js';
import { dataDirOf, demoConfiguration, LOCAL_PROVIDER, portOf } from './configuration.js';
import { startDemoIdentityProvider } from './identity-provider/identity-provider.js';
import { freePort } from './loopback/loopback-server.js';
import { readDemoData, writeDemoData, type DemoData } from './demo-data.js';
import { SoftwareKey } from './software-key/software-key.js';

/** The running demo. */
export interface RunningDemo {
  readonly baseUrl: string;
  readonly dataDir: string;
  /** A key whose attestation root this run trusts; further software keys get the same root. */
  readonly vendor: SoftwareKey;
  /** The slug of the demo's own identity provider, unless the environment names others. */
  readonly provider: string | undefined;
  close(): Promise<void>;
}

/**
 * Composes and starts the demo: the production application, which also trusts the root of this run's software keys and
 * the root of `--attestation-root`, and serves the pages' software key.
 *
 * @throws Error when it cannot start, for example with a production database
 */
export async function serveDemo(
  options: Pick<DemoArguments, 'port' | 'attestationRoot'>,
): Promise<RunningDemo> {
  const outsideRoots = readRoots(options.attestationRoot);
  const environment = readProcessEnvironment();
  const dataDir = dataDirOf(environment);
  let data = readDemoData(dataDir);
  const port = await freePort(portOf(environment, options.port));
  const provider = await localProvider(data);
  const { config, warnings } = demoConfiguration(environment, port, data.rootSecret, provider);
  const { baseUrl } = config.http;
  const logger = createLogger(config.log, 2); // the scenario prints to standard output
  for (const warning of warnings) logger.warn({ context: 'config' }, warning);

  const isLocal = environment['SVC_IDPS'] === undefined;
  const redirectUri = `${baseUrl}/oauth/callback`;
  const identityProvider = isLocal
    ? await startDemoIdentityProvider({ ...provider, redirectUri })
    : undefined;
  const write = (changed: Partial<DemoData>) => {
    data = { ...data, ...changed };
    writeDemoData(dataDir, data);
  };
  const vendor = new SoftwareKey({ state: data.softwareKey });
  const browserKey = new BrowserKey(vendor, baseUrl, (softwareKey) => write({ softwareKey }));
  const app = await createApp(config, logger, composition(vendor, browserKey, outsideRoots));
  write({ identityProviderPort: provider.port }); // only now the database is known to be the demo's
  await app.listen();
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGINT')); // the terminal was closed
  return {
    baseUrl,
    dataDir,
    vendor,
    provider: isLocal ? LOCAL_PROVIDER : undefined,
    async close() {
      await app.close();
      await identityProvider?.close();
    },
  };
}

function composition(
  vendor: SoftwareKey,
  browserKey: BrowserKey,
  outsideRoots: readonly TrustAnchor[],
): CompositionRoot {
  return {
    composition: 'demo',
    ports: { https: 443, http: 80 }, // unused: the demo's configuration allows no certificate
    hosts: ['127.0.0.1', '::1'], // some browsers resolve `localhost` to ::1, where another program could listen
    timeouts: EDGE_TIMEOUTS,
    kmsLimits: KMS_LIMITS,
    trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(vendor.rootPem), ...outsideRoots],
    pageScripts: ['/static/demo/software-key.js'],
    modules: [BrowserKeyModule.forRoot(browserKey)],
  };
}

/** Reuses the port of earlier runs where it is free, since users and organizations belong to its issuer. */
async function localProvider({ identityProviderPort }: DemoData) {
  const port = await freePort(identityProviderPort).catch(() => freePort(0));
  return {
    port,
    issuer: `http://127.0.0.1:${port}`,
    clientId: 'svc-demo',
    clientSecret: systemRandom.token(),
  };
}

function readRoots(file: string | undefined): TrustAnchor[] {
  if (file === undefined) return [];
  try {
    return [trustAnchorFromPem(readFileSync(file, 'utf8'))];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`--attestation-root: ${file} holds no root certificate (${reason})`, { cause });
  }
}
