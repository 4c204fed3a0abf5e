import type { Logger } from 'pino';
import { asciiDomain } from '#domain/organizations/domains/domain-name.js';
import {
  MOST_DOMAINS_LISTED,
  type KnownDomain,
  type KnownOrganization,
} from '#domain/admin/operator-access/domains.repository.js';
import type {
  DomainOutcome,
  OperatorDomainAct,
  OperatorDomains,
} from '#domain/admin/operator-access/operator-domains.js';
import { operatorDetails, type MachineOperator } from '#domain/admin/operator-access/operator.js';
import { Refused } from './act.js';
import type { DomainCommand, GlassCommand } from './arguments.js';
import type { OperatorTerminal } from './operator/terminal.js';
import { endedText, inLine } from './text.js';

/** The objects that a command needs to release or to assign a domain. */
export interface DomainParts {
  readonly domains: OperatorDomains;
  readonly terminal: OperatorTerminal;
  readonly operator: MachineOperator;
  readonly log: Logger;
}

type ListCommand = Extract<GlassCommand, { readonly name: 'domains'; readonly act: 'list' }>;

const PROOFS = {
  dns: 'proven by DNS',
  operator: 'assigned by the operator',
  provider: 'proven by the setting of its provider',
} as const;

/** Lists the e-mail domains of every organization, or of the organization `org`. */
export async function listDomains(
  { json, org }: ListCommand,
  domains: OperatorDomains,
  terminal: OperatorTerminal,
): Promise<void> {
  const listed = await domains.list({ org });
  if (listed.length === MOST_DOMAINS_LISTED) {
    const most = `Only the first ${MOST_DOMAINS_LISTED} are listed.`;
    terminal.say(`${most} Name an organization with --org.`);
  }
  if (json) {
    terminal.print(JSON.stringify({ domains: listed.map(domainJson) }, undefined, 2));
    return;
  }
  for (const domain of listed) terminal.print(domainLine(domain));
  if (listed.length === 0) terminal.say('There is no domain.');
}

/**
 * Releases or assigns a domain. The operator must first type its name to confirm, unless `--yes`
 * was given.
 *
 * @throws Refused if the text is no domain name, if the organization is unknown, or if the operator
 *   does not confirm
 * @throws DomainError not_found if no organization has the domain to release, or another code if a
 *   rule of the domain layer refuses the change
 */
export async function actOnDomain(command: DomainCommand, parts: DomainParts): Promise<void> {
  const { domains, terminal, operator, log } = parts;
  const domain = asciiDomain(command.domain);
  if (domain === undefined) {
    throw new Refused(`${JSON.stringify(command.domain)} is no domain name.`);
  }
  const organization = await organizationOf(command, domains);
  const wanted = { kind: command.act, domain, orgId: organization?.id ?? null, operator };
  const rehearsed = await domains.rehearse(wanted);
  const [owner] = (await domains.list({ domain })).filter(({ isOwned }) => isOwned);
  await confirm(command, { domain, owner, organization, rehearsed }, terminal);
  const outcome = await domains.perform(wanted);
  if (outcome.changed) {
    const facts = { domain, org_id: wanted.orgId ?? outcome.ownerBefore, ...outcome.ended };
    log.warn(
      {
        context: 'security',
        act: `domains ${command.act}`,
        ...facts,
        ...operatorDetails(operator),
      },
      `break-glass: domains ${command.act}`,
    );
  }
  report(command, wanted, outcome, terminal);
}

/**
 * Finds the organization that gets a domain; undefined if the domain is released.
 * @throws Refused if there is no such organization
 */
async function organizationOf(
  { act, org }: DomainCommand,
  domains: OperatorDomains,
): Promise<KnownOrganization | undefined> {
  if (act === 'release' || org === undefined) return undefined;
  const found = await domains.organization(org);
  if (found) return found;
  throw new Refused(`No organization has the id or the verified domain ${org}.`);
}

/**
 * Shows the domain, its owner, and what the command would end. Then it asks the operator to type
 * the name of the domain, unless `--yes` was given.
 *
 * @throws Refused if the operator types another text, or if standard input has ended
 */
async function confirm(
  { act, yes }: DomainCommand,
  facts: {
    readonly domain: string;
    readonly owner: KnownDomain | undefined;
    readonly organization: KnownOrganization | undefined;
    readonly rehearsed: DomainOutcome;
  },
  terminal: OperatorTerminal,
): Promise<void> {
  const { domain, owner, organization, rehearsed } = facts;
  terminal.say(
    act === 'release'
      ? `Takes the domain ${domain} from its organization:`
      : `Gives the domain ${domain} to the organization ${inLine(organization?.name ?? null)} ${organization?.id ?? ''}:`,
  );
  terminal.say(`  ${owner ? domainLine(owner) : `${domain}  (no organization owns it)`}`);
  terminal.say(`This ends: ${endedText(rehearsed.ended)}.`);
  if (act === 'assign' && owner && owner.organization.id !== organization?.id) {
    terminal.say(
      'The organization that had the domain loses it, since a sign-in only asserted it.',
    );
  }
  if (yes) return;
  const typed = await terminal.ask('Type the domain to confirm: ');
  if (typed === undefined) {
    throw new Refused(
      'Nothing was changed: there is no terminal to confirm at. Scripts use --yes.',
    );
  }
  if (asciiDomain(typed) !== domain) {
    throw new Refused('Nothing was changed: this is not the domain.');
  }
}

function report(
  { act, json }: DomainCommand,
  { domain, orgId }: OperatorDomainAct,
  { changed, ownerBefore, ended }: DomainOutcome,
  terminal: OperatorTerminal,
): void {
  if (json) {
    const answer = {
      command: `domains ${act}`,
      changed,
      domain,
      organization: orgId,
      organization_before: ownerBefore,
      ended,
    };
    terminal.print(JSON.stringify(answer, undefined, 2));
    return;
  }
  if (!changed) {
    terminal.print(`${domain} is assigned to this organization already.`);
    return;
  }
  terminal.say(`Ended: ${endedText(ended)}.`);
  terminal.print(act === 'release' ? `${domain} is released.` : `${domain} is assigned.`);
}

/** Describes a domain in one line for a terminal. */
function domainLine({
  domain,
  organization,
  isPrimary,
  isOwned,
  proof,
  users,
}: KnownDomain): string {
  const facts = [
    ...(isPrimary ? ['primary'] : []),
    isOwned ? (proof === null ? 'only asserted by a sign-in' : PROOFS[proof]) : 'not owned',
    users === 1 ? '1 user' : `${users} users`,
    `organization "${inLine(organization.name)}" ${organization.id}`,
  ];
  return `${domain}  (${facts.join('; ')})`;
}

/** Describes a domain as a JSON object. */
function domainJson({
  domain,
  organization,
  isPrimary,
  isOwned,
  proof,
  users,
}: KnownDomain): object {
  return { domain, organization, primary: isPrimary, owned: isOwned, proof, users };
}
