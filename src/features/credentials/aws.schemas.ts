import { z } from 'zod';
import type { IssuedAwsToken } from '#domain/aws/aws-tokens.service.js';

/**
 * The ARN of an IAM role: a partition, an account, an optional path, and a name of 64 characters at
 * most.
 */
const ROLE_ARN = /^arn:aws[a-z-]*:iam::\d{12}:role\/(?:[\x21-\x7e]{1,1920}\/)?[\w+=,.@-]{1,64}$/;

/** The body of `POST /v1/credentials/aws/token`, and the query of GET. */
export const AWS_REQUEST = z.object({
  role_arn: z
    .string()
    .max(2048, 'must have 2048 characters at most')
    .regex(ROLE_ARN, 'must be the ARN of an IAM role')
    .optional(),
});
export type AwsRequest = z.output<typeof AWS_REQUEST>;

/** The body of POST may be left out. */
export const AWS_BODY = AWS_REQUEST.optional();

/** The answer of `/v1/credentials/aws/token`. */
export const AWS_TOKEN_JSON = z
  .object({ id_token: z.string(), expires_in: z.int() })
  .meta({ id: 'AwsToken' });
/** The JSON of {@link AWS_TOKEN_JSON}. */
export type AwsTokenJson = z.output<typeof AWS_TOKEN_JSON>;

/** Renders an issued token. */
export function awsTokenJson({ token, expiresIn }: IssuedAwsToken): AwsTokenJson {
  return { id_token: token, expires_in: expiresIn };
}
