import { z } from 'zod';
import type { IssuedAwsToken } from '#domain/aws/aws-tokens.service.js';
import { LONGEST_ARN, ROLE_ARN } from '#domain/aws/role-arn.js';

const roleArn = z
  .string()
  .max(LONGEST_ARN, `must have ${LONGEST_ARN} characters at most`)
  .regex(ROLE_ARN, 'must be the ARN of an IAM role')
  .optional()
  .describe('The ARN of the role; required where the organization lists its roles.');

const READ_ONLY =
  'True adds the transitive session tag `read_only`, by which a role can deny all acts but reading.';

/** The query of `GET /v1/credentials/aws/token`. */
export const AWS_QUERY = z
  .object({
    role_arn: roleArn,
    read_only: z
      .enum(['true', 'false'])
      .transform((text) => text === 'true')
      .meta({ type: 'boolean' })
      .optional()
      .describe(READ_ONLY),
  })
  .describe('The role for which the token is.');
/** The role in the query or the body of a request for a token. */
export type AwsRequest = z.output<typeof AWS_QUERY>;

/** The body of `POST /v1/credentials/aws/token`, which may be left out. */
export const AWS_BODY = z
  .object({ role_arn: roleArn, read_only: z.boolean().optional().describe(READ_ONLY) })
  .optional()
  .describe('The role for which the token is. The body may be left out.');

/** The answer of `/v1/credentials/aws/token`. */
export const AWS_TOKEN_JSON = z
  .object({
    id_token: z.string().describe('The token for `AssumeRoleWithWebIdentity` of AWS STS.'),
    expires_in: z.int().describe('The seconds until it expires.'),
  })
  .meta({ id: 'AwsToken', description: 'A token that AWS STS exchanges for credentials.' });
/** The type of the answer of `/v1/credentials/aws/token`, by which the compiler checks answers. */
export type AwsTokenJson = z.output<typeof AWS_TOKEN_JSON>;

/** Renders a token for AWS STS as JSON, with its lifetime in seconds. */
export function awsTokenJson({ token, expiresIn }: IssuedAwsToken): AwsTokenJson {
  return { id_token: token, expires_in: expiresIn };
}
