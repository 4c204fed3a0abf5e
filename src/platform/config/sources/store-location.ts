import { z } from 'zod';
import { ConfigProblems } from '#platform/config/load-config.js';
import { problemLines } from '#platform/config/provider-settings.js';
import { ENVIRONMENT, withoutEmpty, type Environment } from '#platform/config/environment.js';
import { httpsUrl } from '#platform/config/shapes/setting-shapes.js';
import type { ObjectLocation } from '#platform/object-store/s3-object.js';

/** The place of the document, and the seconds between two looks at it. */
export interface StoreSettings {
  readonly location: ObjectLocation;
  readonly pollSeconds: number;
}

/** The variables that place the document, and those of the AWS SDK that this service reads in its place. */
const LOCATION = ENVIRONMENT.pick({
  SVC_S3_CONFIG_BUCKET: true,
  SVC_S3_CONFIG_KEY: true,
  SVC_S3_CONFIG_REGION: true,
  SVC_S3_CONFIG_ENDPOINT: true,
  SVC_S3_CONFIG_POLL_INTERVAL: true,
  SVC_EXTRA_CA_CERTS: true,
}).extend({
  AWS_ENDPOINT_URL_S3: httpsUrl.optional(),
  AWS_ENDPOINT_URL: httpsUrl.optional(),
  AWS_REGION: z.string().optional(),
  AWS_DEFAULT_REGION: z.string().optional(),
});

/** The region that is asked where none is set. AWS answers with the bucket's own region, and the SDK asks there. */
const FIRST_REGION = 'us-east-1';

/**
 * Returns the place of the configuration document; undefined where none is configured.
 *
 * @throws ConfigProblems with every problem of these variables at once
 */
export function storeSettings(environment: Environment): StoreSettings | undefined {
  const given = withoutEmpty(environment);
  if (given['SVC_S3_CONFIG_BUCKET'] === undefined) return undefined;
  const parsed = LOCATION.safeParse(given);
  if (!parsed.success) throw new ConfigProblems(problemLines(parsed.error));
  const { SVC_S3_CONFIG_BUCKET: bucket = '', SVC_S3_CONFIG_REGION: region, ...rest } = parsed.data;
  const ofSdk = rest.AWS_REGION ?? rest.AWS_DEFAULT_REGION ?? FIRST_REGION;
  return {
    location: {
      bucket,
      key: rest.SVC_S3_CONFIG_KEY,
      region: region === 'auto' ? ofSdk : region,
      endpoint: rest.SVC_S3_CONFIG_ENDPOINT ?? rest.AWS_ENDPOINT_URL_S3 ?? rest.AWS_ENDPOINT_URL,
      extraCaCerts: rest.SVC_EXTRA_CA_CERTS,
    },
    pollSeconds: rest.SVC_S3_CONFIG_POLL_INTERVAL,
  };
}
