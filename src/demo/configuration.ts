import type { LocalProvider } from '@svc/demo/local-provider';
import { ConfigProblems, loadConfig, type LoadedConfig } from '#platform/config/load-config.js';
import type { Environment } from '#platform/config/environment.js';
import { isLoopbackHost } from '#platform/text/loopback.js';

/** The random secrets of the demo. Environment variables of the service override them. */
export interface DemoSecrets {
  readonly rootSecret: string;
  readonly metricsToken: string;
}

/** The slug of the demo's own identity provider. */
export const LOCAL_PROVIDER = 'demo';

/** Returns the data directory of the demo. */
export function dataDirOf(environment: Environment): string {
  return environment['SVC_DATA_DIR'] ?? './data-demo';
}

/**
 * Returns the port to listen on: the option `--port`, or else that of SVC_LISTEN_ADDR or
 * SVC_BASE_URL, or else 3000.
 */
export function portOf(environment: Environment, option: number | undefined): number {
  const listen = environment['SVC_LISTEN_ADDR'];
  return (
    option ??
    portIn(listen === undefined ? undefined : `http://${listen}`) ??
    portIn(environment['SVC_BASE_URL']) ??
    3000
  );
}

function portIn(address: string | undefined): number | undefined {
  const url = address === undefined ? null : URL.parse(address);
  return url?.protocol === 'http:' ? Number(url.port || 80) : undefined;
}

/**
 * Builds the demo's configuration. Each setting has a value of the demo, and a variable of the
 * environment replaces it. No variable is required, and no `.env` is read.
 *
 * @param port the port of {@link portOf}
 * @param provider the demo's own identity provider; not used if the environment names others
 * @throws ConfigProblems with every problem at once, or with one line for an origin that is not
 *   loopback
 */
export function demoConfiguration(
  environment: Environment,
  port: number,
  { rootSecret, metricsToken }: DemoSecrets,
  provider: Omit<LocalProvider, 'port'>,
): LoadedConfig {
  refusePublicOrigin(environment);
  const host = listenHostOf(environment);
  const loaded = loadConfig({
    SVC_BASE_URL: `http://localhost:${port}`,
    SVC_DATA_DIR: dataDirOf(environment),
    SVC_JWT_SECRET: rootSecret,
    SVC_METRICS_BEARER_TOKEN: metricsToken,
    SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
    SVC_RP_NAME: 'svc demo',
    SVC_IDPS: LOCAL_PROVIDER,
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_NAME: 'the demo identity provider',
    SVC_IDP_DEMO_ISSUER: provider.issuer,
    SVC_IDP_DEMO_CLIENT_ID: provider.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: provider.clientSecret,
    SVC_DEVICE_POLL_INTERVAL: '1', // so that the scenario waits one second for its own approval
    // Hides two expected warnings: that signing keys are in the database, and refusals that the
    // scenario causes on purpose.
    RUST_LOG: 'warn,token-signing=error,errors=error',
    ...environment,
    SVC_LISTEN_ADDR: `${host}:${port}`,
  });
  if (loaded.config.http.tls) {
    throw new ConfigProblems(['SVC_TLS_CERT: the demo serves plain HTTP, on loopback alone']);
  }
  return loaded;
}

/**
 * Refuses an origin that is not on this machine, before any other check. The demo accepts software
 * keys, which any program can make, so it must not be public, even behind a proxy.
 *
 * @throws ConfigProblems with one line
 */
export function refusePublicOrigin(environment: Environment): void {
  if (environment['SVC_S3_CONFIG_BUCKET'] !== undefined) {
    refuse('SVC_S3_CONFIG_BUCKET: the demo reads no object store');
  }
  if (!isLoopbackHost(listenHostOf(environment))) {
    refuse('SVC_LISTEN_ADDR: must be a loopback address, the demo serves no other');
  }
  const baseUrl = environment['SVC_BASE_URL'];
  if (baseUrl !== undefined && !isLoopbackHost(URL.parse(baseUrl)?.hostname ?? '')) {
    refuse(
      'SVC_BASE_URL: must be a loopback address, because the demo accepts software keys; unset it, or start the service itself',
    );
  }
}

function listenHostOf(environment: Environment): string {
  return environment['SVC_LISTEN_ADDR']?.replace(/:\d+$/, '') ?? '127.0.0.1';
}

/** Refuses the start. @throws ConfigProblems with one line */
function refuse(problem: string): never {
  throw new ConfigProblems([problem]);
}
