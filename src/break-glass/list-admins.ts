import { MOST_PEOPLE } from '#domain/admin/operator-access/people.repository.js';
import type { OperatorAccess } from '#domain/admin/operator-access/operator-access.js';
import type { GlassCommand } from './arguments.js';
import type { OperatorTerminal } from './operator/terminal.js';
import { personJson, personLine } from './text.js';

/** Lists the admins of every organization, or of the organization `org`. */
export async function listAdmins(
  { json, org }: Extract<GlassCommand, { readonly name: 'list-admins' }>,
  access: OperatorAccess,
  terminal: OperatorTerminal,
): Promise<void> {
  const admins = await access.find({ organization: org, adminsOnly: true });
  if (admins.length === MOST_PEOPLE) {
    terminal.say(`Only the first ${MOST_PEOPLE} are listed. Name an organization with --org.`);
  }
  if (json) {
    terminal.print(JSON.stringify({ admins: admins.map(personJson) }, undefined, 2));
    return;
  }
  for (const admin of admins) terminal.print(personLine(admin));
  if (admins.length === 0) terminal.say('There is no admin.');
}
