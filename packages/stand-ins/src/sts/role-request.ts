import { z } from 'zod';
import type { WebIdentity } from './web-identity.js';
import { AwsError } from './xml.js';

/** A role of IAM, with the conditions of its trust policy that the stand-in checks. */
export interface TrustingRole {
  readonly arn: string;
  /** Returns true if the trust policy accepts a `sub`. */
  readonly trusts: (subject: string) => boolean;
  /**
   * The actions that the trust policy allows; by default all three that a token of the service
   * needs.
   */
  readonly actions?: readonly string[];
  /**
   * True if the trust policy has the condition `"Bool": { "sts:RoleAuthorizedByIdp": "true" }`.
   * Then the token must have a claim that names the role.
   */
  readonly demandsRoleClaim?: boolean;
  /** The `MaxSessionDuration` of the role in seconds; an hour by default. */
  readonly maxDuration?: number;
}

/** The parameters of `AssumeRoleWithWebIdentity`. */
export interface RoleRequest {
  readonly roleArn: string;
  readonly sessionName: string;
  readonly token: string;
  readonly duration: number;
  /** The ARNs of the managed policies that limit the role session (`PolicyArns`). */
  readonly policyArns: readonly string[];
}

/** The session tags and the source identity that a token contains. AWS writes them to its logs. */
export interface SessionNames {
  readonly sourceIdentity: string | undefined;
  readonly tags: Readonly<Record<string, string>>;
}

const NAME = /^[\w+=,.@-]{2,64}$/;
const TAG_TEXT = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;
const ALL_ACTIONS = ['sts:AssumeRoleWithWebIdentity', 'sts:TagSession', 'sts:SetSourceIdentity'];
const TAGS_OF_TOKEN = z.object({
  principal_tags: z.record(z.string(), z.array(z.string()).length(1)),
  transitive_tag_keys: z.array(z.string()).default([]),
});

/**
 * Reads the parameters of a request.
 *
 * @throws AwsError ValidationError, MissingParameter
 */
export function roleRequestOf(parameters: URLSearchParams): RoleRequest {
  const roleArn = required(parameters, 'RoleArn');
  const sessionName = required(parameters, 'RoleSessionName');
  const token = required(parameters, 'WebIdentityToken');
  const duration = Number(parameters.get('DurationSeconds') ?? 3600);
  if (!/^arn:aws[a-z-]*:iam::\d{12}:role\/[\x21-\x7e]+$/.test(roleArn) || roleArn.length > 2048) {
    throw constraint('roleArn', 'Member must be the ARN of a role');
  }
  if (!NAME.test(sessionName)) {
    throw constraint(
      'roleSessionName',
      String.raw`Member must satisfy regular expression pattern: [\w+=,.@-]*`,
    );
  }
  if (!Number.isInteger(duration) || duration < 900 || duration > 43_200) {
    throw constraint('durationSeconds', 'Member must have a value between 900 and 43200');
  }
  return { roleArn, sessionName, token, duration, policyArns: policyArnsOf(parameters, roleArn) };
}

/** The largest number of managed policies that may limit a role session. */
const MOST_POLICIES = 10;

/**
 * Reads the managed policies that limit a role session. AWS has its own policies in each partition,
 * so that the partition of a policy must be that of the role.
 *
 * @throws AwsError ValidationError, PackedPolicyTooLarge
 */
function policyArnsOf(parameters: URLSearchParams, roleArn: string): string[] {
  const arns = [...parameters]
    .filter(([name]) => /^PolicyArns\.member\.\d+\.arn$/.test(name))
    .map(([, arn]) => arn);
  if (arns.length > MOST_POLICIES) {
    throw new AwsError('PackedPolicyTooLarge', 'There are too many session policies');
  }
  const [, partition = ''] = roleArn.split(':');
  const form = new RegExp(`^arn:${partition}:iam::(?:aws|\\d{12}):policy/[\\w+=,.@/-]+$`);
  if (!arns.every((arn) => form.test(arn))) {
    throw constraint('policyArns', 'Member must be the ARN of a policy in the partition');
  }
  return arns;
}

/**
 * Reads the session tags and the source identity of a token.
 *
 * @throws AwsError ValidationError for a value that STS does not accept
 */
export function sessionNamesOf(identity: WebIdentity): SessionNames {
  const sourceIdentity = identity['https://aws.amazon.com/source_identity'];
  if (
    sourceIdentity !== undefined &&
    !(typeof sourceIdentity === 'string' && NAME.test(sourceIdentity))
  ) {
    throw constraint('sourceIdentity', String.raw`Member must satisfy [\w+=,.@-]{2,64}`);
  }
  const claim = identity['https://aws.amazon.com/tags'] ?? { principal_tags: {} };
  const tags = TAGS_OF_TOKEN.safeParse(claim).data;
  const pairs = Object.entries(tags?.principal_tags ?? {}).map(
    ([key, [value = '']]) => [key, value] as const,
  );
  const isValid =
    tags !== undefined &&
    pairs.length <= 50 &&
    pairs.every(
      ([key, value]) =>
        key.length > 0 && key.length <= 128 && value.length <= 256 && TAG_TEXT.test(key + value),
    ) &&
    tags.transitive_tag_keys.every((key) => key in tags.principal_tags);
  if (!isValid) throw constraint('tags', 'Member must be valid session tags');
  return { sourceIdentity, tags: Object.fromEntries(pairs) };
}

/** The claim that lists the roles a token may assume, by their ARNs. */
const ROLES_OF_TOKEN = z.array(z.string().max(2048)).min(1);

/**
 * Returns true if the claim of roles in the token names the role, and false if not; undefined for a
 * token without the claim. AWS sets the condition key `sts:RoleAuthorizedByIdp` to this value.
 * Without the claim, the key is false, and only the trust policy decides.
 *
 * @throws AwsError InvalidIdentityToken for a claim that is no list of ARNs
 */
export function isAuthorizedByIdp(identity: WebIdentity, roleArn: string): boolean | undefined {
  const claim = identity['https://aws.amazon.com/roles'];
  if (claim === undefined) return undefined;
  const roles = ROLES_OF_TOKEN.safeParse(claim).data;
  if (roles === undefined) {
    throw new AwsError('InvalidIdentityToken', 'The claim of roles must be a list of ARNs');
  }
  return roles.includes(roleArn);
}

/**
 * Checks that both the token's claim of roles, if it has one, and the trust policy of the role
 * allow a request.
 *
 * @throws AwsError AccessDenied, ValidationError
 */
export function assertTrusted(
  role: TrustingRole | undefined,
  {
    subject,
    names,
    duration,
    isAuthorized,
  }: {
    readonly subject: string;
    readonly isAuthorized: boolean | undefined;
    readonly names: SessionNames;
    readonly duration: number;
  },
): void {
  const needed = [
    'sts:AssumeRoleWithWebIdentity',
    ...(Object.keys(names.tags).length > 0 ? ['sts:TagSession'] : []),
    ...(names.sourceIdentity === undefined ? [] : ['sts:SetSourceIdentity']),
  ];
  const { actions = ALL_ACTIONS, maxDuration = 3600, demandsRoleClaim = false } = role ?? {};
  const isAllowedByClaim = isAuthorized ?? !demandsRoleClaim;
  const isAllowed = role?.trusts(subject) && needed.every((action) => actions.includes(action));
  if (!isAllowedByClaim || !isAllowed) {
    throw new AwsError(
      'AccessDenied',
      'Not authorized to perform sts:AssumeRoleWithWebIdentity',
      403,
    );
  }
  if (duration > maxDuration) {
    throw new AwsError(
      'ValidationError',
      'The requested DurationSeconds exceeds the MaxSessionDuration set for this role.',
    );
  }
}

function required(parameters: URLSearchParams, name: string): string {
  const value = parameters.get(name);
  if (value === null || value === '') {
    throw new AwsError('MissingParameter', `The request must contain the parameter ${name}`);
  }
  return value;
}

function constraint(name: string, message: string): AwsError {
  return new AwsError(
    'ValidationError',
    `1 validation error detected: Value at '${name}' failed to satisfy constraint: ${message}`,
  );
}
