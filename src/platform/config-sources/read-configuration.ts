import { z } from 'zod';
import { readEnvironment, type Environment } from '#platform/config/environment.js';
import { loadConfig, loadPart, type LoadedConfig } from '#platform/config/load-config.js';
import { httpsUrl } from '#platform/config/table/shapes.js';
import { TABLE } from '#platform/config/table/settings.js';
import { variable } from '#platform/config/table/variable.js';
import { openS3Object } from '#platform/object-store/s3-object.js';
import { LiveConfiguration } from './live-configuration.js';
import { readStored } from './stored-configuration.js';

/**
 * A valid configuration, and the comparison with a document that may change while the process runs.
 */
export interface ReadConfiguration extends LoadedConfig {
  /** Undefined if no object store is configured. */
  readonly live: LiveConfiguration | undefined;
}

/** The times of the object store that a test shortens. */
export interface StoreTimes {
  /** Milliseconds for one read of the document. */
  readonly timeLimit?: number;
  /** Seconds between two looks at the document, in place of SVC_S3_CONFIG_POLL_INTERVAL. */
  readonly pollSeconds?: number;
}

/**
 * The variables that say where the document is, and the variables of the AWS SDK for the same
 * purpose.
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
 * The region for the first request if no region is set. AWS answers with the region of the bucket,
 * and the SDK repeats the request there.
 */
const FIRST_REGION = 'us-east-1';

/**
 * Reads the configuration from the environment of the process, and from the object store if one is
 * set.
 * @throws ConfigProblems with every problem at once
 */
export function readConfiguration(): Promise<ReadConfiguration> {
  return configurationOf(readEnvironment());
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
  if (store === undefined) return { ...loadConfig(environment), live: undefined };
  const reader = await openS3Object(store.location, times.timeLimit);
  const stored = await readStored(reader, environment);
  const pollSeconds = times.pollSeconds ?? store.pollSeconds;
  const live = new LiveConfiguration(reader, environment, stored, pollSeconds);
  return { ...stored.loaded, live };
}

/**
 * Returns the place of the document in the object store, and the seconds between two looks at it;
 * undefined if no bucket is set.
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
