import { readEnvironment, type Environment } from '#platform/config/environment.js';
import { loadConfig, type LoadedConfig } from '#platform/config/load-config.js';
import { openS3Object } from '#platform/object-store/s3-object.js';
import { LiveConfiguration } from './live-configuration.js';
import { storeSettings } from './store-location.js';
import { readStored } from './stored-configuration.js';

/** A valid configuration, with the document that may change while it runs. */
export interface ReadConfiguration extends LoadedConfig {
  /** Undefined without an object store. */
  readonly live: LiveConfiguration | undefined;
}

/**
 * Reads the whole configuration of production.
 *
 * @throws ConfigProblems with every problem at once
 */
export function readConfiguration(): Promise<ReadConfiguration> {
  return configurationOf(readEnvironment());
}

/** The times of the object store that a test shortens. */
export interface StoreTimes {
  /** Milliseconds for one read of the document. */
  readonly timeLimit?: number;
  /** Seconds between two looks at the document, in place of SVC_S3_CONFIG_POLL_INTERVAL. */
  readonly pollSeconds?: number;
}

/**
 * Reads the configuration that an environment leads to: the settings of the object store over those
 * of the environment, validated together.
 *
 * @throws ConfigProblems with every problem at once
 */
export async function configurationOf(
  environment: Environment,
  times: StoreTimes = {},
): Promise<ReadConfiguration> {
  const store = storeSettings(environment);
  if (store === undefined) return { ...loadConfig(environment), live: undefined };
  const reader = await openS3Object(store.location, times.timeLimit);
  const stored = await readStored(reader, environment);
  const pollSeconds = times.pollSeconds ?? store.pollSeconds;
  const live = new LiveConfiguration(reader, environment, stored, pollSeconds);
  return { ...stored.loaded, live };
}
