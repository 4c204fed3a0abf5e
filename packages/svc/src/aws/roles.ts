import type { CommandContext } from '../command/command-context.js';
import { parseArguments } from '../program/arguments.js';
import { reachPage } from '../reach/own-reach.js';
import { tableLines } from '../terminal/table.js';
import { ownRoles } from './own-roles.js';

const USAGE = 'svc aws roles';

/** `svc aws roles`: lists the roles of the user, with the profile and the region of each. */
export async function awsRoles(args: readonly string[], context: CommandContext): Promise<void> {
  parseArguments(args, {}, USAGE);
  const roles = await ownRoles(context);
  const rows = roles.map(({ name, profile = '-', region = '-', arn }) => [
    name,
    profile,
    region,
    arn,
  ]);
  const document = roles.map(({ name, profile, region, arn, isListed }) => ({
    name,
    role_arn: arn,
    profile: profile ?? null,
    region: region ?? null,
    listed: isListed,
  }));
  const none = `You have no role. ${reachPage(context.server())} shows what you reach.`;
  const lines = tableLines([['NAME', 'PROFILE', 'REGION', 'ROLE'], ...rows]);
  context.terminal.result({ roles: document }, roles.length === 0 ? [none] : lines);
}
