import { z } from 'zod';
import type { IssuedAwsToken } from '#domain/aws/aws-tokens.service.js';
import { LONGEST_ARN, ROLE_ARN } from '#domain/aws/role-arn.js';

/** The body of `POST /v1/credentials/aws/token`, and the query of GET. */
export const AWS_REQUEST = z.object({
  role_arn: z
    .string()
    .max(LONGEST_ARN, `must have ${LONGEST_ARN} characters at most`)
    .regex(ROLE_ARN, 'must be the ARN of an IAM role')
    .optional(),
});
export type AwsRequest = z.output<typeof AWS_REQUEST>;

/** The body of `POST /v1/credentials/aws/token`, which may be left out. */
export const AWS_BODY = AWS_REQUEST.optional();

/** The answer of `/v1/credentials/aws/token`. */
export const AWS_TOKEN_JSON = z
  .object({ id_token: z.string(), expires_in: z.int() })
  .meta({ id: 'AwsToken' });
/** The type of the answer of `/v1/credentials/aws/token`. */
export type AwsTokenJson = z.output<typeof AWS_TOKEN_JSON>;

/** Renders a token for AWS STS as JSON. */
export function awsTokenJson({ token, expiresIn }: IssuedAwsToken): AwsTokenJson {
  return { id_token: token, expires_in: expiresIn };
}
