import type { Logger } from 'pino';
import type {
  OperatorAccess,
  OperatorAct,
  ActOutcome,
} from '#domain/admin/operator-access/operator-access.js';
import { operatorDetails, type MachineOperator } from '#domain/admin/operator-access/operator.js';
import type { KnownPerson } from '#domain/admin/operator-access/people.repository.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import type { ActName, GlassCommand } from './arguments.js';
import type { OperatorTerminal } from './operator/terminal.js';
import { endedText, personJson, personLine } from './text.js';

/**
 * The error of a refused command. Its message tells the operator the reason. A refused command has
 * changed nothing.
 */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** The objects that a command needs to change the account of a person. */
export interface ActParts {
  readonly access: OperatorAccess;
  readonly terminal: OperatorTerminal;
  readonly operator: MachineOperator;
  readonly log: Logger;
}

type ActCommand = Extract<GlassCommand, { readonly name: ActName }>;

const INTENT: Readonly<Record<ActName, string>> = {
  'make-admin': 'Makes this person an admin',
  'revoke-everything': 'Revokes everything of this person',
  'give-pass': 'Gives this person a re-enrollment pass, and revokes everything else',
};

/**
 * Performs a command on the account of a person. It first shows what the command would end, and
 * asks the operator to type the person's e-mail address, unless `--yes` was given.
 *
 * @throws Refused if the person is not found, or if the operator does not confirm
 * @throws DomainError if a rule of the domain layer refuses the command
 */
export async function act(command: ActCommand, parts: ActParts): Promise<void> {
  const { access, terminal, operator, log } = parts;
  const person = await onePerson(command, access);
  const wanted: OperatorAct = { kind: command.name, userId: person.id, operator };
  await confirm(command, person, await access.rehearse(wanted), terminal);
  const outcome = await access.perform(wanted);
  if (outcome.changed) {
    const facts = { user_id: person.id, org_id: person.organization?.id ?? null };
    const { ended } = outcome;
    log.warn(
      { context: 'security', act: command.name, ...facts, ...ended, ...operatorDetails(operator) },
      `break-glass: ${command.name}`,
    );
  }
  report(command, person, outcome, terminal);
}

/**
 * Finds the one person with an e-mail address. The option `--org` limits the search to one
 * organization.
 * @throws Refused if no person or several people have the address, or if it is no e-mail address
 */
async function onePerson(
  { address, org }: ActCommand,
  access: OperatorAccess,
): Promise<KnownPerson> {
  const email = parseEmailAddress(address);
  if (email === undefined) throw new Refused(`${JSON.stringify(address)} is no e-mail address.`);
  const people = await access.find({ email, organization: org });
  const [person, ...others] = people;
  if (person === undefined) {
    throw new Refused(
      `No account has the address ${email}${org === undefined ? '' : ` in the organization ${org}`}. An account exists once its key was enrolled, or SCIM created it.`,
    );
  }
  if (others.length > 0) {
    const lines = people.map((one) => `  ${personLine(one)}`);
    throw new Refused(
      [`${people.length} accounts have the address ${email}. Name one with --org:`, ...lines].join(
        '\n',
      ),
    );
  }
  return person;
}

/**
 * Shows the person, and what the command would end (sessions, certificates and so on). Then it asks
 * the operator to type the e-mail address of the person, unless `--yes` was given.
 *
 * @throws Refused if the operator types another text, or if standard input has ended
 */
async function confirm(
  { name, yes }: ActCommand,
  person: KnownPerson,
  { ended }: ActOutcome,
  terminal: OperatorTerminal,
): Promise<void> {
  terminal.say(`${INTENT[name]}:`);
  terminal.say(`  ${personLine(person)}`);
  if (name !== 'make-admin') terminal.say(`This ends: ${endedText(ended)}.`);
  if (yes) return;
  const typed = await terminal.ask('Type the address of the person to confirm: ');
  if (typed === undefined) {
    throw new Refused(
      'Nothing was changed: there is no terminal to confirm at. Scripts use --yes.',
    );
  }
  if (parseEmailAddress(typed) !== person.email) {
    throw new Refused('Nothing was changed: this is not the address of the person.');
  }
}

function report(
  { name, json }: ActCommand,
  person: KnownPerson,
  { changed, ended, pass }: ActOutcome,
  terminal: OperatorTerminal,
): void {
  if (json) {
    const secret = pass && { pass: pass.secret, expires_at: pass.expiresAt.toISOString() };
    const answer = { command: name, changed, person: personJson(person), ended, ...secret };
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  if (name === 'make-admin') {
    terminal.print(
      changed ? `${person.email} is an admin now.` : `${person.email} is an admin already.`,
    );
    return;
  }
  if (!pass) {
    terminal.print(`Ended: ${endedText(ended)}.`);
    terminal.say(
      'Who holds the password at the identity provider can sign in and enroll a key. Use give-pass to demand a pass for it.',
    );
    return;
  }
  terminal.say(`Ended: ${endedText(ended)}.`);
  terminal.say(
    `The pass is valid once, until ${pass.expiresAt.toISOString()}. The person signs in, and enters it on the page /enroll.`,
  );
  terminal.print(pass.secret);
}
