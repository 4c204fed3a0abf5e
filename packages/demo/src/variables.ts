import type { LocalProvider } from './local-provider.js';

/** The environment variables of the process that starts the service. */
type Variables = Readonly<Record<string, string | undefined>>;

/** The random secrets of the demo. Environment variables of the service override them. */
export interface DemoSecrets {
  readonly rootSecret: string;
  readonly metricsToken: string;
}

/** The slug of the demo's own identity provider. */
export const LOCAL_PROVIDER = 'demo';

/** Returns the data directory of the demo: SVC_DATA_DIR, or else `./data-demo`. */
export function dataDirOf(environment: Variables): string {
  return environment['SVC_DATA_DIR'] ?? './data-demo';
}

/** Returns the host to listen on: that of SVC_LISTEN_ADDR, or else 127.0.0.1. */
export function listenHostOf(environment: Variables): string {
  return environment['SVC_LISTEN_ADDR']?.replace(/:\d+$/, '') ?? '127.0.0.1';
}

/**
 * Returns the port to listen on: the option `--port`, or else that of SVC_LISTEN_ADDR or
 * SVC_BASE_URL, or else 3000.
 */
export function portOf(environment: Variables, option: number | undefined): number {
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
 * Returns the environment variables that configure the service: the given environment, and the
 * demo's values of variables that it does not set. SVC_LISTEN_ADDR always gets the given port. The
 * variables are not checked, because the service does that.
 *
 * @param port the port of {@link portOf}
 * @param provider the demo's own identity provider; not used if the environment names others
 */
export function demoVariables(
  environment: Variables,
  port: number,
  { rootSecret, metricsToken }: DemoSecrets,
  provider: Omit<LocalProvider, 'port'>,
): Variables {
  return {
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
    SVC_LISTEN_ADDR: `${listenHostOf(environment)}:${port}`,
  };
}
