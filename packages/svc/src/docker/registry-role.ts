import { accountOf, chosenRole, ownRoles, type OwnRole } from '../aws/own-roles.js';
import type { CommandContext } from '../command/command-context.js';
import { CliFailure, STATUS } from '../program/failure.js';
import type { NotedRegistry } from './docker-note.js';
import type { Registry } from './registry.js';

/**
 * Returns the role whose credentials open a registry. It is the one that `svc setup docker --role`
 * noted, or else the only role of the account of the registry. For the public registry any role
 * will do.
 *
 * @throws CliFailure if the user has no such role, or several
 */
export async function roleOf(
  context: CommandContext,
  { host, account }: Registry,
  noted: NotedRegistry | undefined,
): Promise<OwnRole> {
  if (noted?.role !== undefined) return chosenRole(context, noted.role);
  const roles = await ownRoles(context);
  const found = roles.filter((role) => account === undefined || accountOf(role) === account);
  const [role, another] = found;
  if (role && !another) return role;
  const where = account === undefined ? '' : ` in the account ${account}`;
  const message = role ? `You have several roles${where}.` : `You have no role${where}.`;
  const whatToDo = `Choose one: svc setup docker --registry ${host} --role ARN`;
  throw new CliFailure(message, whatToDo, STATUS.refused);
}
