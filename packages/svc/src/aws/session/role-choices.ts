import type { ParsedArguments } from '../../program/arguments.js';
import { isReadOnly } from '../../program/environment.js';
import { usageFailure } from '../../program/failure.js';

/** A role of AWS, and the settings of its session that the user chose. */
export interface RoleChoices {
  readonly role: string;
  /** The duration of the session in seconds. */
  readonly duration: number;
  /** The name of the role session; without it, the source identity in the token is used. */
  readonly sessionName?: string;
  readonly region?: string;
  /** True for a session that can only read. */
  readonly readOnly?: true;
}

const ROLE = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\x21-\x7e]+$/;
const NAME = /^[\w+=,.@-]{2,64}$/;
/** Matches a region, which becomes a part of the host name of STS. */
const REGION = /^[a-z]{2,8}(?:-[a-z0-9]+){1,4}$/;
const AN_HOUR = 3600;

/**
 * Parses the options that name a role and its session.
 *
 * @throws CliFailure with status 2 if the role is missing, or a value has a wrong form
 */
export function roleChoices(options: ParsedArguments, usage: string): RoleChoices {
  const role = options.value('role');
  if (role === undefined) throw usageFailure('--role is missing.', usage);
  assertRole(role, '--role', usage);
  return { role, ...sessionChoices(options, usage) };
}

/**
 * Parses the options about the session of a role. In an environment with `SVC_READ_ONLY` each
 * session can only read, also without `--read-only`.
 *
 * @param defaults the values for options that the user did not give
 * @throws CliFailure with status 2 if a value has a wrong form
 */
export function sessionChoices(
  options: ParsedArguments,
  usage: string,
  defaults: { readonly duration?: number | undefined; readonly region?: string | undefined } = {},
): Omit<RoleChoices, 'role'> {
  const duration = Number(options.value('duration') ?? defaults.duration ?? AN_HOUR);
  if (!Number.isInteger(duration) || duration < 900 || duration > 43_200) {
    throw usageFailure('--duration must be 900 to 43200 seconds.', usage);
  }
  const sessionName = options.value('session-name');
  if (sessionName !== undefined && !NAME.test(sessionName)) {
    throw usageFailure('--session-name must be 2 to 64 of A-Z a-z 0-9 _ + = , . @ -', usage);
  }
  const region = options.value('region') ?? defaults.region;
  if (region !== undefined) assertRegion(region, '--region', usage);
  const readOnly = options.has('read-only') || isReadOnly();
  return {
    duration,
    ...(sessionName && { sessionName }),
    ...(region && { region }),
    ...(readOnly && { readOnly }),
  };
}

/**
 * Returns the choices for a session of a role from its profile, for a command without options about
 * the session. In an environment with `SVC_READ_ONLY` the session can only read.
 *
 * @param readOnly true for a session that can only read even if `SVC_READ_ONLY` is not set
 */
export function defaultChoices(
  role: { readonly arn: string; readonly region?: string; readonly duration?: number },
  readOnly = false,
): RoleChoices {
  const { arn, region, duration = AN_HOUR } = role;
  return {
    role: arn,
    duration,
    ...(region !== undefined && { region }),
    ...((readOnly || isReadOnly()) && { readOnly: true }),
  };
}

/**
 * Checks that a text is the ARN of a role.
 * @throws CliFailure with status 2 for any other text
 */
export function assertRole(role: string, origin: string, usage: string): void {
  if (ROLE.test(role)) return;
  throw usageFailure(`${origin} must be like arn:aws:iam::123456789012:role/engineer.`, usage);
}

/**
 * Checks that a text is the name of a region.
 * @throws CliFailure with status 2 for any other text
 */
export function assertRegion(region: string, origin: string, usage: string): void {
  if (!isRegion(region)) throw usageFailure(`${origin} must be like eu-central-1.`, usage);
}

/** Returns true if a text has the form of the name of a region. */
export function isRegion(text: string): boolean {
  return REGION.test(text);
}
