import { runChild, splitAtProgram } from '../child/child.js';
import { combined, NO_CHANGE } from '../child/child-environment.js';
import { READ_ONLY_CHANGE } from '../child/read-only.js';
import type { CommandContext } from '../command/command-context.js';
import { parseArguments, type ParsedArguments } from '../program/arguments.js';
import { usageFailure } from '../program/failure.js';
import { chosenRole, type OwnRole } from './own-roles.js';
import { roleVariables } from './role-variables.js';
import { sessionChoices, type RoleChoices } from './session/role-choices.js';

/** The form of `svc aws exec`, with all its options. */
export const EXEC_USAGE =
  'svc aws exec [ROLE] [--profile NAME] [--region REGION] [--duration SECONDS] [--session-name NAME] [--read-only] -- PROGRAM';

/** The options about the role and its session that `exec` and `console` share. */
export const SESSION_OPTIONS = {
  flags: ['read-only'],
  values: ['profile', 'region', 'duration', 'session-name'],
} as const;

/** `svc aws exec`: runs a program with the credentials of a role in its environment alone. */
export async function awsExec(args: readonly string[], context: CommandContext): Promise<number> {
  const { own, program } = splitAtProgram(args, EXEC_USAGE);
  const options = parseArguments(own, { ...SESSION_OPTIONS, positionals: 1 }, EXEC_USAGE);
  const { choices } = await sessionOf(context, options, EXEC_USAGE);
  const change = await roleVariables(context, choices);
  const mark = choices.readOnly ? READ_ONLY_CHANGE : NO_CHANGE;
  return runChild(program, combined(mark, change), context.terminal);
}

/**
 * Returns the role that the arguments name, and the choices for its session. If an option is
 * missing, the profile of the role decides.
 *
 * @throws CliFailure with status 2 for an unknown role, and for options that cannot be used
 */
export async function sessionOf(
  context: CommandContext,
  options: ParsedArguments,
  usage: string,
): Promise<{ readonly role: OwnRole; readonly choices: RoleChoices }> {
  const [given] = options.positionals;
  const profile = options.value('profile');
  if (given !== undefined && profile !== undefined) {
    throw usageFailure('Name the role or its profile, not both.', usage);
  }
  sessionChoices(options, usage); // a wrong option fails before the server is asked
  const role = await chosenRole(context, given ?? profile);
  return { role, choices: { role: role.arn, ...sessionChoices(options, usage, role) } };
}
