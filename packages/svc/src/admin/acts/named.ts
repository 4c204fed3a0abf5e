import { CliFailure, STATUS } from '../../program/failure.js';
import { ServerRefusal } from '../../server/server-client.js';
import { printable } from '../../terminal/table.js';
import { withQuery, type AdminClient } from './admin-client.js';

/** A thing, such as a member, that the user may mean by an argument. */
export interface Candidate {
  readonly id: string;
  /** The texts by which a person may also call it, such as an e-mail address. */
  readonly names: readonly string[];
}

/** The largest number of pages of a list that are read to find a name. */
const MOST_PAGES = 20;

/** The largest number of candidates that a failure lists. */
const MOST_LISTED = 10;

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Returns true for a text that is a UUID, which is never looked up as a name. */
export function isId(text: string): boolean {
  return UUID.test(text);
}

/**
 * Returns the id of the only candidate that has a text as its id or name. A name may be in upper or
 * lower case. But the text must be the whole name, so that no act concerns a thing with a similar
 * name.
 *
 * @param kind the word for a thing, such as `member`
 * @throws CliFailure that lists the candidates, if there is none or if there are several
 */
export function idOf(kind: string, text: string, candidates: readonly Candidate[]): string {
  if (candidates.some(({ id }) => id === text)) return text;
  const wanted = text.toLowerCase();
  const found = candidates.filter(({ names }) =>
    names.some((name) => name.toLowerCase() === wanted),
  );
  const [only] = found;
  if (only && found.length === 1) return only.id;
  if (only) throw ambiguous(`Several have the name ${text}: which ${kind}?`, found);
  const similar = candidates.filter(({ names }) =>
    names.some((name) => name.toLowerCase().includes(wanted)),
  );
  const message = `There is no ${kind} ${text}.`;
  if (similar.length > 0) throw ambiguous(message, similar);
  throw new CliFailure(message, 'The act "list" shows all of them.', STATUS.failed);
}

function ambiguous(message: string, candidates: readonly Candidate[]): CliFailure {
  const lines = candidates
    .slice(0, MOST_LISTED)
    .map(({ id, names }) => printable(`${id}  ${names.join('  ')}`));
  const more = candidates.length > MOST_LISTED ? ['…'] : [];
  const whatToDo = ['Name one by its id:', ...lines, ...more].join('\n');
  return new CliFailure(message, whatToDo, STATUS.failed);
}

/**
 * Reads the items of a list of the API from all of its pages.
 * @throws CliFailure for a list that is too long to look a name up in it
 */
export async function allOf<Item>(
  admin: AdminClient,
  to: string,
  items: string,
  query: Readonly<Record<string, string>> = {},
): Promise<Item[]> {
  const all: Item[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await admin.json<Record<string, unknown>>(
      'GET',
      withQuery(to, { ...query, after }),
    );
    all.push(...((page[items] ?? []) as Item[]));
    if (page['complete'] === false) break;
    if (typeof page['next'] !== 'string') return all;
    after = page['next'];
  }
  throw new CliFailure('Too many things have such a name.', 'Give the id in place of the name.');
}

/**
 * Runs a request. If the server does not know the object (status 404), it returns the refusal as
 * `unknown` and throws nothing.
 */
export async function unlessUnknown<T>(
  request: () => Promise<T>,
): Promise<T | { readonly unknown: ServerRefusal }> {
  try {
    return await request();
  } catch (error) {
    if (error instanceof ServerRefusal && error.httpStatus === 404) return { unknown: error };
    throw error;
  }
}
