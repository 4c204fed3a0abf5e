import type { Command } from '../command/command.js';
import { usageFailure } from '../program/failure.js';
import { parseArguments } from '../program/arguments.js';
import { roleChoices } from './session/role-choices.js';
import { roleCredentials } from './session/role-cache.js';

const USAGE =
  'svc aws credential-process --role ARN [--duration SECONDS] [--session-name NAME] [--region REGION]';

/**
 * `svc aws` prints the credentials of an AWS role. The AWS CLI and SDKs run it as
 * `credential_process`.
 */
export const command: Command = {
  usage: USAGE,
  help: [
    'credential-process  prints the credentials of a role for `credential_process` of ~/.aws/config',
    '',
    '--role ARN           the role, such as arn:aws:iam::123456789012:role/engineer',
    '--duration SECONDS   900 to 43200, 3600 by default; the role sets the longest',
    '--session-name NAME  the name in CloudTrail; your e-mail address by default',
    '--region REGION      the region of STS, before AWS_REGION and AWS_DEFAULT_REGION',
    '',
    'Connect the AWS CLI with: svc setup aws --role ARN --profile NAME',
  ],
  async run(args, context) {
    const [verb, ...rest] = args;
    if (verb !== 'credential-process') {
      throw usageFailure(verb === undefined ? 'A word is missing.' : `Unknown: ${verb}`, USAGE);
    }
    const values = ['role', 'duration', 'session-name', 'region'];
    const choices = roleChoices(parseArguments(rest, { values }, USAGE), USAGE);
    const credentials = await roleCredentials(context, choices);
    context.terminal.raw(`${JSON.stringify({ Version: 1, ...credentials }, null, 2)}\n`);
  },
};
