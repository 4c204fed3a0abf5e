import type { CommandContext } from '../command/command-context.js';
import { openPrivately } from '../login/private-address.js';
import { parseArguments } from '../program/arguments.js';
import { variable } from '../program/environment.js';
import { usageFailure } from '../program/failure.js';
import { signInAddress } from './console-sign-in.js';
import { SESSION_OPTIONS, sessionOf } from './exec.js';
import { newCredentials } from './session/role-cache.js';
import { isRegion } from './session/role-choices.js';

/** The form of `svc aws console`, with all its options. */
export const CONSOLE_USAGE =
  'svc aws console [ROLE] [--service NAME] [--print] [--profile NAME] [--region REGION] [--duration SECONDS] [--session-name NAME] [--read-only]';

/**
 * `svc aws console`: signs the browser in to the console of AWS with new credentials of a role. The
 * console session ends with these credentials.
 */
export async function awsConsole(args: readonly string[], context: CommandContext): Promise<void> {
  const options = parseArguments(
    args,
    {
      flags: [...SESSION_OPTIONS.flags, 'print'],
      values: [...SESSION_OPTIONS.values, 'service'],
      positionals: 1,
    },
    CONSOLE_USAGE,
  );
  const service = options.value('service');
  if (service !== undefined && !/^[a-z0-9][a-z0-9-]{0,62}$/.test(service)) {
    throw usageFailure('--service must be like ec2.', CONSOLE_USAGE);
  }
  const { role, choices } = await sessionOf(context, options, CONSOLE_USAGE);
  const credentials = await newCredentials(context, choices);
  const page = { service, region: choices.region ?? regionOfEnvironment(), role: role.arn };
  const address = await signInAddress(credentials, page, context);
  if (options.has('print')) {
    context.terminal.result({ url: address }, [address]);
    return;
  }
  const ends = credentials.Expiration;
  context.terminal.warn(`Opening the AWS console as ${role.name}, until ${ends} at the latest.`);
  await openPrivately(address, 'svc aws console --print');
  context.terminal.result({ opened: true, role_arn: role.arn, expires_at: ends }, []);
}

function regionOfEnvironment(): string | undefined {
  const region = variable('AWS_REGION') ?? variable('AWS_DEFAULT_REGION');
  return region !== undefined && isRegion(region) ? region : undefined;
}
