import 'reflect-metadata';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BrowserKey } from '@svc/demo/browser-key';
import { StoredData } from '@svc/demo/demo-data';
import { chooseLocalProvider, startLocalProvider } from '@svc/demo/local-provider';
import type { RunningDemo } from '@svc/demo/running-demo';
import { Tour } from '@svc/demo/tour';
import { dataDirOf, LOCAL_PROVIDER } from '@svc/demo/variables';
import { SoftwareKey } from '@svc/stand-ins/software-key';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { PINNED_ROOTS } from '#domain/keys/authenticators/attestation/trust-anchors.js';
import { systemRandom } from '#platform/clock/random.js';
import { EDGE_TIMEOUTS } from '#platform/http/edge/edge-timeouts.js';
import { KMS_LIMITS } from '#platform/kms/call-policy.js';
import { createLogger } from '#platform/telemetry/pino-options.js';
import type { CompositionRoot } from '../app.module.js';
import { createApp } from '../create-app.js';
import { sentenceOf } from '../features/pages/admin/event-words.js';
import { BrowserKeyModule } from './browser-key/browser-key.module.js';
import { demoConfiguration } from './configuration.js';
import type { StartFacts } from './start-checks.js';
import { TourModule } from './tour/tour.module.js';

/**
 * The file of the `svc` command. The relative path is right in `src` and in `dist`, because both
 * folders are in the root of the project.
 */
const COMMAND = fileURLToPath(new URL('../../dist/svc.mjs', import.meta.url));

/**
 * Starts the demo. It is the production application with two differences. It also trusts the root
 * certificates of this run's software keys and of `--attestation-root`. And it serves the software
 * key of the pages and the tour.
 *
 * @throws Error if it cannot start, for example with a production database
 */
export async function serveDemo({
  environment,
  outsideRoots,
  port,
}: StartFacts): Promise<RunningDemo> {
  const dataDir = resolve(dataDirOf(environment));
  const data = new StoredData(dataDir);
  const provider = await chooseLocalProvider(data.current);
  const { rootSecret, metricsToken = systemRandom.token() } = data.current;
  const secrets = { rootSecret, metricsToken };
  const { config, warnings } = demoConfiguration(environment, port, secrets, provider);
  const { baseUrl } = config.http;
  const logger = createLogger(config.log, 2); // the scenario prints to standard output
  for (const warning of warnings) logger.warn({ context: 'config' }, warning);

  const isLocal = environment['SVC_IDPS'] === undefined;
  const identityProvider = isLocal
    ? await startLocalProvider(provider, `${baseUrl}/oauth/callback`)
    : undefined;
  const vendor = new SoftwareKey({ state: data.current.softwareKey });
  const key = new BrowserKey(vendor, baseUrl, (softwareKey) => data.write({ softwareKey }));
  const slug = isLocal ? LOCAL_PROVIDER : undefined;
  const tour = new Tour({
    baseUrl,
    dataDir,
    command: COMMAND,
    key,
    provider: slug,
    metricsToken: config.metrics.bearerToken,
    applicationPort: data.current.application?.port ?? FIRST_APPLICATION_PORT,
    data: () => data.current,
    write: (changed) => data.write(changed),
    describe: (event) =>
      sentenceOf(event)
        .map(({ text }) => text)
        .join(''),
  });
  const modules = [BrowserKeyModule.forRoot(key), TourModule.forRoot(tour)];
  const app = await createApp(config, logger, composition(vendor, outsideRoots, modules));
  // The port and the token are written only now, because the start has by now checked that the
  // database belongs to the demo.
  data.write({ identityProviderPort: provider.port, metricsToken });
  await app.listen();
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGINT')); // the terminal was closed
  return {
    baseUrl,
    dataDir: dataDirOf(environment),
    command: COMMAND,
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

function composition(
  vendor: SoftwareKey,
  outsideRoots: readonly TrustAnchor[],
  modules: CompositionRoot['modules'],
): CompositionRoot {
  return {
    composition: 'demo',
    ports: { https: 443, http: 80 }, // unused, because only TLS needs them
    // The demo listens on both IP addresses of `localhost`, because some browsers resolve
    // `localhost` to ::1. Otherwise another program could listen at ::1, and would get their
    // requests.
    hosts: ['127.0.0.1', '::1'],
    timeouts: EDGE_TIMEOUTS,
    kmsLimits: KMS_LIMITS,
    trustAnchors: [...PINNED_ROOTS, trustAnchorFromPem(vendor.rootPem), ...outsideRoots],
    pageScripts: ['/static/demo/software-key.js'],
    modules,
  };
}
