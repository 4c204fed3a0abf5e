import { asciiLowerCase } from '../text/ascii.js';
import { ScimError } from '../errors/scim-error.js';
import { readSimple, readValue } from './attribute-value.js';
import { rootPath } from './draft.js';
import type { AttributeReference } from './schemas.js';

/** An attribute as an object names it, with its value. */
export interface NamedValue {
  /** The name as the client wrote it, with a URN or without. */
  readonly name: string;
  readonly target: AttributeReference;
  readonly value: unknown;
}

/**
 * Finds the members of an object that are ignored because of their bare name. A bare name is the
 * name, without a URN, of an attribute that only an extension has. Such a name, like
 * `organization`, may mean an attribute of another service. So it counts only if its value fits,
 * and if the object has the attribute neither by its full name nor a second time.
 */
export function ignoredBareNames<Member extends NamedValue>(
  members: readonly Member[],
): ReadonlySet<Member> {
  const bare = members.filter(isBare);
  if (bare.length === 0) return new Set();
  const isOfBare = new Set(bare);
  const full = new Set(
    members.filter((each) => !isOfBare.has(each)).map(({ target }) => rootPath(target)),
  );
  const times = new Map<string, number>();
  for (const { target } of bare) times.set(target.path, (times.get(target.path) ?? 0) + 1);
  return new Set(
    bare.filter(
      (each) => full.has(rootPath(each.target)) || times.get(each.target.path) !== 1 || !fits(each),
    ),
  );
}

/** Returns true for a name without a URN whose attribute only an extension has. */
function isBare({ name, target: { extension } }: NamedValue): boolean {
  return extension !== undefined && !asciiLowerCase(name).startsWith(asciiLowerCase(extension));
}

/** Returns true if the value that a client sent fits the type of its attribute. */
function fits({ target: { attribute, sub }, value }: NamedValue): boolean {
  try {
    if (sub) readSimple(sub, value);
    else readValue(attribute, value);
    return true;
  } catch (error) {
    if (error instanceof ScimError) return false;
    throw error;
  }
}
