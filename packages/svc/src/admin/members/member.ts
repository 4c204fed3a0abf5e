import type { ParsedArguments } from '../../program/arguments.js';
import type { PlainAnswer } from '../../server/transport.js';
import { printable } from '../../terminal/table.js';
import { path, type AdminClient } from '../acts/admin-client.js';
import { allOf, idOf, isId } from '../acts/named.js';
import type { Ended } from '../acts/ended.js';

/** The path of the API for the members of the organization. */
export const MEMBERS_PATH = '/api/v1/org/members';

/**
 * The filters that the lists of members and of keys share. Each is a parameter of the API, with a
 * dash in place of `_`.
 */
export const MEMBER_FILTERS = ['role', 'status', 'keys', 'model', 'fips', 'last-use', 'tie'];

/** Returns the parameters of the API for a list: the text to search, and the given options. */
export function queryOf(
  options: ParsedArguments,
  names: readonly string[],
): Record<string, string | undefined> {
  const given = names.map((name) => [name.replace('-', '_'), options.value(name)] as const);
  return { q: options.positionals[0], ...Object.fromEntries(given) };
}

/** The facts of a member that the command reads in the answers of the API. */
export interface KnownMember {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly is_org_admin: boolean;
  readonly active: boolean;
  readonly scim_managed: boolean;
  readonly twins: readonly string[];
  readonly linked_to: readonly string[];
  /**
   * The numbers of things that each act would end now, by the name of the act. Entries in the list
   * of members do not have them.
   */
  readonly ending?: Readonly<Record<string, Ended>>;
  /** The API tokens that the member made. Entries in the list of members do not have them. */
  readonly api_tokens?: readonly NamedThing[];
  /** The enabled event receivers whose URL the member set. */
  readonly event_receivers?: readonly NamedThing[];
}

interface NamedThing {
  readonly id: string;
  readonly name: string;
}

/** Finds the id of a member by id, e-mail address or whole name. */
export async function findMember(admin: AdminClient, text: string): Promise<string> {
  if (isId(text)) return text;
  const found = await allOf<KnownMember>(admin, MEMBERS_PATH, 'members', { q: text, limit: '200' });
  const candidates = found.map(({ id, email, name }) => ({
    id,
    names: [email, name].filter((each) => each !== null),
  }));
  return idOf('member', text, candidates);
}

/**
 * Returns a member, and the answer with its entity tag. By the tag, a later change is refused if
 * the member has changed.
 */
export async function readMember(
  admin: AdminClient,
  text: string,
): Promise<{ readonly member: KnownMember; readonly answer: PlainAnswer }> {
  const id = await findMember(admin, text);
  const answer = await admin.request('GET', path`/api/v1/org/members/${id}`);
  return { member: JSON.parse(answer.text) as KnownMember, answer };
}

/** Returns the name and the e-mail address by which an admin knows a member. */
export function nameOf({ id, email, name }: KnownMember): string {
  const known = name !== null && email !== null ? `${name} <${email}>` : (email ?? name ?? id);
  return printable(known);
}
