import type { LocalProvider } from '@svc/demo/local-provider';
import { demoVariables, listenHostOf, type DemoSecrets } from '@svc/demo/variables';
import { ConfigProblems, loadConfig, type LoadedConfig } from '#platform/config/load-config.js';
import type { Environment } from '#platform/config/environment.js';
import { isLoopbackHost } from '#platform/text/loopback.js';

/**
 * Builds the demo's configuration from the environment, as {@link demoVariables} completes it. No
 * variable is required, and no `.env` is read. The parameters are those of that function.
 *
 * @throws ConfigProblems with every problem at once, or with one line for a setting that the demo
 *   refuses
 */
export function demoConfiguration(
  environment: Environment,
  port: number,
  secrets: DemoSecrets,
  provider: Omit<LocalProvider, 'port'>,
): LoadedConfig {
  refusePublicOrigin(environment);
  const loaded = loadConfig(demoVariables(environment, port, secrets, provider));
  if (loaded.config.http.tls) {
    throw new ConfigProblems(['SVC_TLS_CERT: the demo serves plain HTTP, on loopback alone']);
  }
  return loaded;
}

/**
 * Refuses a public origin or a listen address that is not on this machine, before any other check.
 * The demo accepts software keys, which any program can make, so it must not be public, even behind
 * a proxy. A configuration in an object store is refused too.
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

/**
 * Refuses the start.
 *
 * @throws ConfigProblems with one line
 */
function refuse(problem: string): never {
  throw new ConfigProblems([problem]);
}
