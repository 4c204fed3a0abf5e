import { ConfigProblems, loadConfig, type LoadedConfig } from '#platform/config/load-config.js';
import type { Environment } from '#platform/config/environment.js';
import { isLoopbackHost } from '#platform/text/loopback.js';

/** The client that the demo's service is at the demo's identity provider: both end with the process. */
export interface LocalProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The slug of the demo's own identity provider. */
export const LOCAL_PROVIDER = 'demo';

/** Where the demo keeps its data. */
export function dataDirOf(environment: Environment): string {
  return environment['SVC_DATA_DIR'] ?? './data-demo';
}

/** The port to listen on: the one asked for, or else that of SVC_LISTEN_ADDR or SVC_BASE_URL, or else 3000. */
export function portOf(environment: Environment, asked: number | undefined): number {
  const listen = environment['SVC_LISTEN_ADDR'];
  return (
    asked ??
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
 * The demo's configuration: its own settings, and over them those of the environment. It needs nothing set, and reads
 * no `.env`.
 *
 * @param port where the command line, or else the environment, wants it to listen
 * @param provider the demo's own identity provider; the environment's take its place
 * @throws ConfigProblems with every problem at once
 */
export function demoConfiguration(
  environment: Environment,
  port: number,
  rootSecret: string,
  provider: LocalProvider,
): LoadedConfig {
  const host = environment['SVC_LISTEN_ADDR']?.replace(/:\d+$/, '') ?? '127.0.0.1';
  const loaded = loadConfig({
    SVC_BASE_URL: `http://localhost:${port}`,
    SVC_DATA_DIR: dataDirOf(environment),
    SVC_JWT_SECRET: rootSecret,
    SVC_TRUSTED_PROXIES: '127.0.0.0/8,::1/128',
    SVC_RP_NAME: 'svc demo',
    SVC_IDPS: LOCAL_PROVIDER,
    SVC_IDP_DEMO_TYPE: 'oidc',
    SVC_IDP_DEMO_NAME: 'the demo identity provider',
    SVC_IDP_DEMO_ISSUER: provider.issuer,
    SVC_IDP_DEMO_CLIENT_ID: provider.clientId,
    SVC_IDP_DEMO_CLIENT_SECRET: provider.clientSecret,
    // Expected here: keys that the database keeps, and the refusals that the walk provokes.
    RUST_LOG: 'warn,token-signing=error,errors=error',
    ...environment,
    SVC_LISTEN_ADDR: `${host}:${port}`,
  });
  if (!isLoopbackHost(host)) {
    throw new ConfigProblems([
      'SVC_LISTEN_ADDR: must be a loopback address, the demo serves no other',
    ]);
  }
  if (loaded.config.http.tls) {
    throw new ConfigProblems(['SVC_TLS_CERT: the demo serves plain HTTP, on loopback alone']);
  }
  return loaded;
}
