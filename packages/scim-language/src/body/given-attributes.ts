import { ScimError } from '../errors/scim-error.js';
import {
  hasParts,
  invalidValue,
  isEmpty,
  isObject,
  readSimple,
  readValue,
  withParts,
  type AttributeValue,
} from '../schema/attribute-value.js';
import { type CriticalAttribute } from '../schema/critical-attribute.js';
import { complexIn, isComplex, isWritable, rootPath, type Draft } from '../schema/draft.js';
import { notStorable, resemblanceOf, unclearValue, type Refuse } from '../schema/refused-part.js';
import { ignoredBareNames, type NamedValue } from '../schema/bare-names.js';
import { isStorableValue } from '../schema/literal.js';
import {
  findAttribute,
  findSchema,
  type AttributeReference,
  type ResourceSchema,
} from '../schema/schemas.js';
import { checkLength } from '../schema/stored-user.js';
import { refusedPart } from '../schema/written-user.js';

/** Makes the error `invalidSyntax` for a required attribute without a value. */
export function missing(name: string): ScimError {
  return new ScimError('invalidSyntax', `${name} is required.`);
}

/** An attribute with the value that a body gives it. */
export interface Given {
  readonly target: AttributeReference;
  readonly raw: unknown;
}

/**
 * How to read a body: the resource type, its critical attribute, and the function that receives the
 * parts that are not understood. An unclear reference to the critical attribute is never ignored,
 * because it may be meant to end access.
 */
export interface BodyReading {
  readonly resource: ResourceSchema;
  readonly critical: CriticalAttribute;
  readonly refuse: Refuse;
  /**
   * True for a POST. A POST ignores an unknown name that resembles the critical attribute. The new
   * resource has no access yet, so that the name cannot be meant to end it.
   */
  readonly isNew?: boolean;
}

/**
 * Finds the attributes that a body sets, by path. Keys may be nested, dotted, or prefixed with a
 * URN. The value `null` sets nothing. An attribute that the body has twice is refused and not set.
 * Unknown attributes are ignored, but refused if they have characters that cannot be stored. The
 * same is true of some names of extension attributes without their URN ({@link ignoredBareNames}).
 * @throws ScimError `invalidSyntax` for a body that is no object, and for a new resource with
 *   characters that cannot be stored
 */
export function givenIn(body: unknown, reading: BodyReading): Map<string, Given> {
  const { resource, refuse, isNew = false } = reading;
  if (!isObject(body)) throw new ScimError('invalidSyntax', 'The body must be a JSON object.');
  if (isNew && !isStorableValue(body)) throw notStorable();
  const given = new Map<string, Given>();
  const twice = new Set<string>();
  const entries = entriesOf(body, resource);
  const ignored = ignoredBareNames(entries.filter(isKnown));
  for (const entry of entries) {
    const { name: key, target, value: raw } = entry;
    if (raw === null || isUnclear(key, raw, target, reading)) continue;
    if (!target || !isWritable(target) || (isKnown(entry) && ignored.has(entry))) {
      if (!isStorableValue([key, raw])) {
        refuse({ kind: 'fault', name: key, error: notStorable() });
      }
      continue;
    }
    const { path } = target;
    if (given.has(path) && !twice.has(path)) {
      twice.add(path);
      refuse({ kind: 'fault', name: path, error: invalidValue(path, 'occurs twice') });
    }
    given.set(path, { target, raw });
  }
  for (const path of twice) given.delete(path);
  return given;
}

/**
 * Returns true for an unclear reference to the critical attribute (`active` or `members`), and for
 * a name that may mean it. The function then refuses the part, because it may be meant to end
 * access.
 */
function isUnclear(
  key: string,
  raw: unknown,
  target: AttributeReference | undefined,
  { resource, critical, refuse, isNew = false }: BodyReading,
): boolean {
  if (target?.path === critical) return false;
  const named = { name: key, value: raw, isKnown: target !== undefined || isNew };
  const kind = resemblanceOf(critical, named, resource);
  if (kind !== undefined) refuse({ kind, name: key, error: unclearValue(critical) });
  return kind !== undefined;
}

/** Reads the values of attributes into a draft, which is a resource that is not complete yet. */
export function draftFrom(given: ReadonlyMap<string, Given>, refuse: Refuse): Draft {
  const draft: Draft = new Map();
  for (const each of given.values()) {
    attempt(each, refuse, ({ target, raw }) => {
      if (target.path === 'active' && isEmpty(raw)) throw invalidValue('active', 'has no value');
      put(draft, target, raw);
    });
  }
  return draft;
}

/**
 * Reads an attribute by a function. If the attribute cannot be applied, it is refused, and the
 * result is undefined.
 */
export function attempt<Value>(
  given: Given | undefined,
  refuse: Refuse,
  read: (given: Given) => Value,
): Value | undefined {
  if (!given) return undefined;
  try {
    return read(given);
  } catch (error) {
    refuse(refusedPart(given.target, error));
    return undefined;
  }
}

/**
 * Returns the keys of a body with the attributes that they name. A key inside the object of an
 * extension gets a full name, which begins with the URN of the extension.
 */
function entriesOf(body: Readonly<Record<string, unknown>>, resource: ResourceSchema): Entry[] {
  const entryOf = (name: string, value: unknown): Entry => ({
    name,
    target: findAttribute(resource, name),
    value,
  });
  return Object.entries(body).flatMap(([key, raw]) => {
    const schema = findSchema(resource, key);
    if (!schema || !isObject(raw)) return [entryOf(key, raw)];
    return Object.entries(raw).map(([inner, value]) => entryOf(`${schema.id}:${inner}`, value));
  });
}

/** A key of a body with its value. The attribute is undefined for an unknown name. */
type Entry = Omit<NamedValue, 'target'> & { readonly target: AttributeReference | undefined };

const isKnown = (entry: Entry): entry is Entry & NamedValue => entry.target !== undefined;

function put(draft: Draft, target: AttributeReference, raw: unknown): void {
  const { attribute, sub } = target;
  const path = rootPath(target);
  if (!sub) {
    const value = readValue(attribute, raw);
    if (value === undefined) return;
    checkLength(path, value);
    merge(draft, path, value);
  } else if (!attribute.multiValued) {
    const parts = [[sub, readSimple(sub, raw, target.path)]] as const;
    const value = withParts(complexIn(draft, path), parts);
    if (hasParts(value)) draft.set(path, value);
    else draft.delete(path);
  }
}

/**
 * Adds parts of a complex value to the parts that the draft has already, because a body may have
 * both `name` and `name.givenName`.
 */
function merge(draft: Draft, path: string, value: AttributeValue): void {
  const before = complexIn(draft, path);
  draft.set(path, before && isComplex(value) ? Object.assign(before, value) : value);
}
