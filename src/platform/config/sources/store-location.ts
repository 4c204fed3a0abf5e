import { z } from 'zod';
import { loadPart } from '#platform/config/load-config.js';
import type { Environment } from '#platform/config/environment.js';
import { httpsUrl } from '#platform/config/shapes/setting-shapes.js';
import { TABLE } from '#platform/config/table/table.js';
import { variable } from '#platform/config/table/variable.js';
import type { ObjectLocation } from '#platform/object-store/s3-object.js';

/** The place of the document, and the seconds between two looks at it. */
export interface StoreSettings {
  readonly location: ObjectLocation;
  readonly pollSeconds: number;
}

const ofSdk = <Shape extends z.ZodType>(name: string, shape: Shape) =>
  variable(name, shape, { meaning: 'A variable of the AWS SDK, which this service reads itself.' });

/** The variables that place the document, and those of the AWS SDK. */
const LOCATION = {
  ...TABLE.objectStore,
  extraCaCerts: TABLE.upstream.extraCaCerts,
  ofS3: ofSdk('AWS_ENDPOINT_URL_S3', httpsUrl.optional()),
  ofAll: ofSdk('AWS_ENDPOINT_URL', httpsUrl.optional()),
  regionOfSdk: ofSdk('AWS_REGION', z.string().optional()),
  defaultRegion: ofSdk('AWS_DEFAULT_REGION', z.string().optional()),
};

/** The region that is asked if none is set. AWS answers with the bucket's own, if the SDK asks. */
const FIRST_REGION = 'us-east-1';

/**
 * Returns the place of the configuration document; undefined if there is none.
 *
 * @throws ConfigProblems with every problem of these variables at once
 */
export function storeSettings(environment: Environment): StoreSettings | undefined {
  if (!environment['SVC_S3_CONFIG_BUCKET']) return undefined;
  const {
    bucket = '',
    key,
    region,
    extraCaCerts,
    pollSeconds,
    ...rest
  } = loadPart(LOCATION, environment);
  const endpoint = rest.endpoint ?? rest.ofS3 ?? rest.ofAll;
  const ofSdkOrFirst = rest.regionOfSdk ?? rest.defaultRegion ?? FIRST_REGION;
  const location = {
    bucket,
    key,
    region: region === 'auto' ? ofSdkOrFirst : region,
    endpoint,
    extraCaCerts,
  };
  return { location, pollSeconds };
}
