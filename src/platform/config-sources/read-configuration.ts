import { z } from 'zod';
import { readEnvironment, type Environment } from '#platform/config/environment.js';
import { loadConfig, loadPart, type LoadedConfig } from '#platform/config/load-config.js';
import { httpsUrl } from '#platform/config/table/shapes.js';
import { TABLE } from '#platform/config/table/settings.js';
import { variable } from '#platform/config/table/variable.js';
import { openS3Object, type StoredObject } from '#platform/object-store/s3-object.js';
import { LiveConfiguration } from './live-configuration.js';
import { readStored, validated } from './stored-configuration.js';

/**
 * A valid configuration, and the object that compares it with a configuration document that may
 * change while the process runs.
 */
export interface ReadConfiguration extends LoadedConfig {
  /**
   * The object that compares the configuration with the document; undefined if no object store is
   * configured.
   */
  readonly live: LiveConfiguration | undefined;
  /** The sources of the configuration, as they were read. */
  readonly sources: ConfigurationSources;
}

/**
 * The sources of a configuration as one process read them. Another process makes the same
 * configuration from them, even if `.env` or the document has changed meanwhile.
 */
export interface ConfigurationSources {
  readonly environment: Environment;
  /** The document of the object store; undefined if no object store is configured. */
  readonly document: StoredObject | undefined;
}

/** The waits for the object store, which a test shortens. */
export interface StoreTimes {
  /** The milliseconds that one read of the document may take. */
  readonly timeLimit?: number;
  /** The seconds between two reads of the document, in place of SVC_S3_CONFIG_POLL_INTERVAL. */
  readonly pollSeconds?: number;
}

/**
 * The variables that say where the configuration document is, and the variables of the AWS SDK that
 * say the same. These variables are read before all others, because the document may set the
 * others.
 */
const PLACE = {
  ...TABLE.objectStore,
  extraCaCerts: TABLE.upstream.extraCaCerts,
  ofS3: variable('AWS_ENDPOINT_URL_S3', httpsUrl.optional()),
  ofAll: variable('AWS_ENDPOINT_URL', httpsUrl.optional()),
  regionOfSdk: variable('AWS_REGION', z.string().optional()),
  defaultRegion: variable('AWS_DEFAULT_REGION', z.string().optional()),
};

/**
 * The region of the first request if no region is set. AWS then answers with the region of the
 * bucket, and the SDK repeats the request there.
 */
const FIRST_REGION = 'us-east-1';

/**
 * Reads the configuration from the environment of the process, and from the object store if one is
 * set.
 *
 * @param given variables from the command line, which replace those of the environment
 * @throws ConfigProblems with every problem at once
 */
export function readConfiguration(given: Environment = {}): Promise<ReadConfiguration> {
  return configurationOf({ ...readEnvironment(), ...given });
}

/**
 * Makes the configuration that another process made, from the sources that the other process read.
 * It sends no request to the object store.
 *
 * @throws ConfigProblems with every problem at once
 */
export async function configurationFrom(sources: ConfigurationSources): Promise<ReadConfiguration> {
  const { environment, document } = sources;
  const store = storeSettings(environment);
  if (!store || !document) return { ...loadConfig(environment), live: undefined, sources };
  const reader = await openS3Object(store.location);
  const stored = validated(document, environment);
  const live = new LiveConfiguration(reader, environment, stored, store.pollSeconds);
  return { ...stored.loaded, live, sources };
}

/**
 * Reads the configuration for an environment. Settings in the document of the object store replace
 * those of the environment, and both are validated together.
 * @throws ConfigProblems with every problem at once
 */
export async function configurationOf(
  environment: Environment,
  times: StoreTimes = {},
): Promise<ReadConfiguration> {
  const store = storeSettings(environment);
  if (store === undefined) {
    const sources = { environment, document: undefined };
    return { ...loadConfig(environment), live: undefined, sources };
  }
  const reader = await openS3Object(store.location, times.timeLimit);
  const stored = await readStored(reader, environment);
  const pollSeconds = times.pollSeconds ?? store.pollSeconds;
  const live = new LiveConfiguration(reader, environment, stored, pollSeconds);
  return { ...stored.loaded, live, sources: { environment, document: stored.object } };
}

/**
 * Returns where the configuration document is in the object store, and the seconds between two
 * reads of it; undefined if no bucket is set.
 *
 * @throws ConfigProblems with every problem of these variables at once
 */
export function storeSettings(environment: Environment) {
  if (!environment['SVC_S3_CONFIG_BUCKET']) return undefined;
  const place = loadPart(PLACE, environment);
  const { bucket = '', key, extraCaCerts, pollSeconds } = place;
  const endpoint = place.endpoint ?? place.ofS3 ?? place.ofAll;
  const ofSdk = place.regionOfSdk ?? place.defaultRegion ?? FIRST_REGION;
  const region = place.region === 'auto' ? ofSdk : place.region;
  return { location: { bucket, key, region, endpoint, extraCaCerts }, pollSeconds };
}
