import type { CommandContext } from '../command/command-context.js';
import type { Command } from '../command/command.js';
import { parseArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import { awsConsole, CONSOLE_USAGE } from './console.js';
import { awsExec, EXEC_USAGE } from './exec.js';
import { awsRoles } from './roles.js';
import { roleCredentials } from './session/role-cache.js';
import { roleChoices } from './session/role-choices.js';

const PROCESS =
  'svc aws credential-process --role ARN [--duration SECONDS] [--session-name NAME] [--region REGION] [--read-only]';
const USAGE = [EXEC_USAGE, CONSOLE_USAGE, 'svc aws roles', PROCESS].join('\n');

/**
 * `svc aws`: runs programs with the credentials of a role, opens the console, and lists the roles.
 * The AWS CLI and SDKs run `svc aws credential-process`.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'exec                runs a program with the credentials of a role in its environment alone',
    'console             signs your browser in to the AWS console with a role',
    'roles               lists your roles, with the profile and the region of each',
    'credential-process  prints the credentials of a role for `credential_process` of ~/.aws/config',
    '',
    'ROLE                 a name of the list, a profile of svc setup aws, or an ARN; may be left out',
    '                     if you have one role',
    '--profile NAME       the role of this profile of svc setup aws',
    '--role ARN           the role, such as arn:aws:iam::123456789012:role/engineer',
    '--duration SECONDS   900 to 43200, 3600 by default; the role sets the longest',
    '--session-name NAME  the name in CloudTrail; your e-mail address by default',
    '--region REGION      the region, before that of the profile, AWS_REGION and AWS_DEFAULT_REGION',
    '--read-only          limits the session to the policy ReadOnlyAccess, and tags it',
    '--service NAME       the page of the console, such as ec2',
    '--print              prints the address of the sign-in, a secret of 15 minutes, and opens nothing',
    '',
    'Connect the AWS CLI with: svc setup aws',
  ],
  async run([word, ...args], context) {
    if (word === 'exec') return awsExec(args, context);
    if (word === 'console') return awsConsole(args, context);
    if (word === 'roles') return awsRoles(args, context);
    if (word === 'credential-process') return credentialProcess(args, context);
    throw usageFailure(word === undefined ? 'A word is missing.' : `Unknown: ${word}`, USAGE);
  },
};

/** Prints the credentials of a role as the JSON that `credential_process` demands. */
async function credentialProcess(args: readonly string[], context: CommandContext): Promise<void> {
  const values = ['role', 'duration', 'session-name', 'region'];
  const options = parseArguments(args, { values, flags: ['read-only'] }, PROCESS);
  const credentials = await roleCredentials(context, roleChoices(options, PROCESS));
  context.terminal.raw(`${JSON.stringify({ Version: 1, ...credentials }, null, 2)}\n`);
}
