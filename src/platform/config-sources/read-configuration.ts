import { z } from 'zod';
import { readEnvironment, type Environment } from '#platform/config/environment.js';
import { loadConfig, loadPart, type LoadedConfig } from '#platform/config/load-config.js';
import { httpsUrl } from '#platform/config/table/shapes.js';
import { TABLE } from '#platform/config/table/table.js';
import { variable } from '#platform/config/table/variable.js';
import { openS3Object } from '#platform/object-store/s3-object.js';
import { LiveConfiguration } from './live-configuration.js';
import { readStored } from './stored-configuration.js';

/** A valid configuration, with the document that may change while it runs. */
export interface ReadConfiguration extends LoadedConfig {
  /** Undefined without an object store. */
  readonly live: LiveConfiguration | undefined;
}

/** The times of the object store that a test shortens. */
export interface StoreTimes {
  /** Milliseconds for one read of the document. */
  readonly timeLimit?: number;
  /** Seconds between two looks at the document, in place of SVC_S3_CONFIG_POLL_INTERVAL. */
  readonly pollSeconds?: number;
}

/** The variables that place the document, and those of the AWS SDK, which counts on them too. */
const PLACE = {
  ...TABLE.objectStore,
  extraCaCerts: TABLE.upstream.extraCaCerts,
  ofS3: variable('AWS_ENDPOINT_URL_S3', httpsUrl.optional()),
  ofAll: variable('AWS_ENDPOINT_URL', httpsUrl.optional()),
  regionOfSdk: variable('AWS_REGION', z.string().optional()),
  defaultRegion: variable('AWS_DEFAULT_REGION', z.string().optional()),
};

/** The region that is asked if none is set. AWS answers with the bucket's own, if the SDK asks. */
const FIRST_REGION = 'us-east-1';

/**
 * Reads the whole configuration of production.
 *
 * @throws ConfigProblems with every problem at once
 */
export function readConfiguration(): Promise<ReadConfiguration> {
  return configurationOf(readEnvironment());
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

/**
 * Returns the place of the document, and the seconds between two looks at it; undefined if there is
 * none.
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
