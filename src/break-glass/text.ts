import { endedItems } from '#domain/access-revocation/ended-words.js';
import type { RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { KnownPerson } from '#domain/admin/operator-access/people.repository.js';
import { toSingleLine } from '#platform/text/single-line.js';

/** The largest number of characters of a name that a line shows. */
const LONGEST_NAME = 100;

/**
 * Returns a text that a user chose, such as a name, so that it fits into one line of a terminal:
 * without control characters, and shortened. A missing text becomes `-`.
 */
export function inLine(text: string | null): string {
  return (text === null ? undefined : toSingleLine(text, LONGEST_NAME)) ?? '-';
}

/** Describes a person in one line. */
export function personLine(person: KnownPerson): string {
  const { email, name, active, isOrgAdmin, isActingAdmin, keys } = person;
  const facts = [
    ...(name === null || name === email ? [] : [inLine(name)]),
    organizationText(person),
    ...(isOrgAdmin ? [isActingAdmin ? 'admin' : 'admin who cannot act'] : []),
    ...(active ? [] : ['deactivated']),
    keys === 1 ? '1 key' : `${keys} keys`,
  ];
  return `${inLine(email)}  (${facts.join('; ')})`;
}

/**
 * Describes the organization of a person: by its domain, which no admin can choose freely, then by
 * its name and its id.
 */
export function organizationText({ organization }: KnownPerson): string {
  if (organization === null) return 'no organization';
  const { id, name, domains } = organization;
  const [domain] = domains;
  const shown = domain === undefined || domain === name ? '' : ` "${inLine(name)}"`;
  return `organization ${domain ?? inLine(name)}${shown} ${id}`;
}

/** Describes a person in JSON. */
export function personJson(person: KnownPerson): object {
  const { organization } = person;
  return {
    id: person.id,
    email: person.email,
    name: person.name,
    active: person.active,
    is_org_admin: person.isOrgAdmin,
    can_act: person.isActingAdmin,
    scim_managed: person.scimManaged,
    keys: person.keys,
    organization: organization && {
      id: organization.id,
      name: organization.name,
      domains: organization.domains,
    },
  };
}

/** Lists how many sessions, keys and so on were ended, in words: `2 sessions, 1 security key`. */
export function endedText(ended: RevokedCounts): string {
  return endedItems(ended).join(', ') || 'nothing';
}
