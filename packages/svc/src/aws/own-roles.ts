import { setupNote } from '../changes/setup-note.js';
import type { CommandContext } from '../command/command-context.js';
import { CliFailure, notLoggedIn, STATUS } from '../program/failure.js';
import { listedReach } from '../reach/own-reach.js';
import { readToken } from '../server/stored-token.js';
import { printable, tableLines } from '../terminal/table.js';
import { AWS_BLOCK, type AwsNote } from './profiles.js';
import { assertRegion, assertRole } from './session/role-choices.js';

/** A role of AWS that the user knows by the server's list, or by a profile of `svc setup aws`. */
export interface OwnRole {
  /** The name of the role at the server; without the list, the last part of its ARN. */
  readonly name: string;
  readonly arn: string;
  readonly region?: string;
  /** The profile of `~/.aws/config` that `svc setup aws` made for the role. */
  readonly profile?: string;
  /** The duration of its sessions in seconds, as the profile has it. */
  readonly duration?: number;
  /** True if the server lists the role for the user. */
  readonly isListed: boolean;
}

/**
 * Returns the roles of the user: those that the server lists, and those of the profiles that `svc
 * setup aws` made.
 *
 * @throws CliFailure without a login, and if the server cannot be asked
 */
export async function ownRoles(context: CommandContext): Promise<OwnRole[]> {
  if (!readToken(context.folder(), 'token')) throw notLoggedIn();
  const reach = await listedReach(context);
  const ofProfiles = rolesOfProfiles(context);
  const listed = (reach?.aws ?? []).map(({ name, role_arn: arn, region }): OwnRole => {
    assertRole(arn, 'A role of the list', '');
    if (region !== null) assertRegion(region, 'A region of the list', '');
    const known = ofProfiles.find((role) => role.arn === arn);
    const ofList = region === null ? {} : { region };
    return { ...ofList, ...known, name, arn, isListed: true };
  });
  const isListed = ({ arn }: OwnRole) => listed.some((role) => role.arn === arn);
  return [...listed, ...ofProfiles.filter((role) => !isListed(role))];
}

/**
 * Returns the role that the user names: by its profile, its name, the last part of its ARN, or its
 * ARN. The server is not asked if exactly one profile has the name, or if the name is an ARN.
 *
 * @param name undefined to choose the only role of the user
 * @throws CliFailure with status 2 if several roles have the name, or none has it
 */
export async function chosenRole(
  context: CommandContext,
  name: string | undefined,
): Promise<OwnRole> {
  const ofProfiles = rolesOfProfiles(context);
  const known = ofProfiles.filter(({ arn, profile }) => name === arn || name === profile);
  if (known[0] && known.length === 1) return known[0];
  if (name?.startsWith('arn:')) {
    assertRole(name, 'The role', 'svc aws roles');
    return { name: lastPart(name), arn: name, isListed: false };
  }
  const all = await ownRoles(context);
  const found = all.filter((role) => name === undefined || isNamed(role, name));
  const [role, another] = found;
  if (role && !another) return role;
  throw role ? ambiguous(name, found) : unknown(name);
}

/** Returns the roles of the profiles that `svc setup aws` made for this server. */
function rolesOfProfiles(context: CommandContext): OwnRole[] {
  const note = (setupNote(context, AWS_BLOCK) ?? {}) as AwsNote;
  return Object.entries(note)
    .filter(([, { server }]) => server === context.server())
    .map(([profile, { role: arn, region, duration }]) => ({
      name: lastPart(arn),
      arn,
      ...(region === undefined ? {} : { region }),
      profile,
      ...(duration === undefined ? {} : { duration }),
      isListed: false,
    }));
}

/** Returns the id of the AWS account to which a role belongs. */
export function accountOf({ arn }: Pick<OwnRole, 'arn'>): string {
  return arn.split(':')[4] ?? '';
}

function lastPart(arn: string): string {
  return arn.slice(arn.lastIndexOf('/') + 1);
}

function isNamed({ name, arn, profile }: OwnRole, wanted: string): boolean {
  return [name, profile, lastPart(arn)].includes(wanted);
}

function ambiguous(name: string | undefined, found: readonly OwnRole[]): CliFailure {
  const rows = found.map(({ name: of, profile = '', arn }) => [of, profile, arn]);
  const message = name === undefined ? 'You have several roles.' : `Several roles are ${name}.`;
  const lines = ['Name one by its profile or its ARN:', ...tableLines(rows)];
  return new CliFailure(message, lines.join('\n'), STATUS.usage);
}

function unknown(name: string | undefined): CliFailure {
  const message = name === undefined ? 'You have no role.' : `You have no role ${printable(name)}.`;
  return new CliFailure(message, 'Run: svc aws roles', STATUS.usage);
}
