import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  PINNED_ROOTS,
  trustAnchorFromPem,
  type TrustAnchor,
} from '#domain/authenticators/attestation/trust-anchors.js';
import { readProcessEnvironment } from '#platform/config/environment.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import { createApp } from '../create-app.js';
import type { DemoArguments } from './arguments.js';
import { BrowserKey } from './browser-key/browser-key.js';
import { BrowserKeyModule } from './browser-key/browser-key.module.js';
import { dataDirOf, demoConfiguration, LOCAL_PROVIDER, portOf } from './configuration.js';
import { startDemoIdentityProvider } from './identity-provider/identity-provider.js';
import { freePort } from './loopback/loopback-server.js';
import { recall, remember, type Memory } from './demo-data.js';
import { SoftwareKey } from './software-key/software-key.js';

/** The demo, listening. */
export interface RunningDemo {
  readonly baseUrl: string;
  readonly dataDir: string;
  /** Attests new software keys under the root that this run trusts. */
  readonly vendor: SoftwareKey;
  /** The demo's own identity provider, unless the environment names others. */
  readonly provider: string | undefined;
  close(): Promise<void>;
}

/**
 * The demo's composition root: the production application, which besides the pinned roots trusts the one of this run's
 * software keys and the one of `--attestation-root`, and has the pages' software key.
 *
 * @throws whatever keeps it from starting, a production database above all
 */
export async function serveDemo(
  options: Pick<DemoArguments, 'port' | 'attestationRoot'>,
): Promise<RunningDemo> {
  const outsideRoots = readRoots(options.attestationRoot);
  const environment = readProcessEnvironment();
  const dataDir = dataDirOf(environment);
  let memory = recall(dataDir);
  const port = await freePort(portOf(environment, options.port));
  const provider = await localProvider(memory);
  const { config, warnings } = demoConfiguration(environment, port, memory.rootSecret, provider);
  const { baseUrl } = config.http;
  const logger = createLogger(config.log, 2); // standard output belongs to the walk
  for (const warning of warnings) logger.warn({ context: 'config' }, warning);

  const isLocal = environment['SVC_IDPS'] === undefined;
  const redirectUri = `${baseUrl}/oauth/callback`;
  const identityProvider = isLocal
    ? await startDemoIdentityProvider({ ...provider, redirectUri })
    : undefined;
  const keep = (changed: Partial<Memory>) => {
    memory = { ...memory, ...changed };
    remember(dataDir, memory);
  };
  const vendor = new SoftwareKey({ memory: memory.softwareKey });
  const browserKey = new BrowserKey(vendor, baseUrl, (softwareKey) => keep({ softwareKey }));
  const app = await createApp(config, logger, {
    composition: 'demo',
    ports: { https: 443, http: 80 }, // unused: its configuration takes no certificate
    hosts: ['127.0.0.1', '::1'], // `localhost` is ::1 to some browsers, which must not meet another program there
    timeouts: EDGE_TIMEOUTS,
    trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(vendor.rootPem), ...outsideRoots],
    pageScripts: ['/static/demo/software-key.js'],
    modules: [BrowserKeyModule.forRoot(browserKey)],
  });
  keep({ identityProviderPort: provider.port }); // not before the database is known to be the demo's
  await app.listen();
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGINT')); // its terminal is gone
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

/** The provider of earlier runs where its port is still free, since people and organizations belong to its issuer. */
async function localProvider({ identityProviderPort }: Memory) {
  const port = await freePort(identityProviderPort).catch(() => freePort(0));
  return {
    port,
    issuer: `http://127.0.0.1:${port}`,
    clientId: 'svc-demo',
    clientSecret: randomBytes(32).toString('base64url'),
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
