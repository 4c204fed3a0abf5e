import { DomainError } from '#platform/errors/domain-error.js';
import {
  invalidValue,
  isEmpty,
  isObject,
  readSimple,
  readValue,
  withParts,
  type AttributeValue,
} from './attribute-value.js';
import { complexIn, isComplex, isWritable, limited, rootPath, type Draft } from './draft.js';
import { memberIds } from './member-ids.js';
import { containsReferenceTo, refersTo, type CriticalAttribute } from './critical-attribute.js';
import {
  findAttribute,
  findSchema,
  GROUP_SCHEMA,
  USER_SCHEMA,
  type AttributeReference,
  type ResourceSchema,
} from './schemas.js';
import { userOf, type StoredUser, type UserAttributes } from './user-attributes.js';

/** A group as the body of a request describes it. */
export interface GroupAttributes {
  readonly displayName: string;
  readonly externalId: string | undefined;
  /** The ids of the members, without duplicates. */
  readonly members: readonly string[];
}

/**
 * Reads the body of a POST or PUT of a user. A PUT without `userName` or `active` keeps the values of `current`, so
 * that an update of a profile never reactivates a user. Unknown and read-only attributes, `schemas` and `password` are
 * ignored.
 * @throws DomainError `invalid_request` where a required attribute is missing, `invalid_value` where one is wrong
 */
export function readUser(body: unknown, mode: 'create'): UserAttributes;
export function readUser(body: unknown, mode: 'replace', current: StoredUser): UserAttributes;
export function readUser(
  body: unknown,
  mode: 'create' | 'replace',
  current?: StoredUser,
): UserAttributes {
  const draft = draftFrom(givenIn(body, USER_SCHEMA, 'active'));
  if (mode === 'replace' && current) {
    if (!draft.has('userName')) draft.set('userName', current.userName);
    if (!draft.has('active')) draft.set('active', current.active);
  }
  const userName = draft.get('userName');
  if (typeof userName !== 'string' || userName.trim() === '') throw missing('userName');
  return userOf(draft);
}

/**
 * Reads the body of a POST or PUT of a group. A body without `members` means a group without members.
 * @throws DomainError as {@link readUser}
 */
export function readGroup(body: unknown): GroupAttributes {
  const given = givenIn(body, GROUP_SCHEMA, 'members');
  const members = memberIds(given.get('members')?.raw);
  given.delete('members'); // members are rows, and have no limit of a list
  const draft = draftFrom(given);
  const [displayName, externalId] = ['displayName', 'externalId'].map((name) =>
    groupText(name, draft.get(name)),
  );
  if (displayName === undefined) throw missing('displayName');
  return { displayName, externalId, members };
}

/** Reads a text of a group, and trims the displayName; undefined for an empty text. */
export function groupText(path: string, value: AttributeValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = path === 'displayName' ? value.trim() : value;
  return text === '' ? undefined : limited(path, text);
}

function missing(name: string): DomainError {
  return new DomainError('invalid_request', `${name} is required.`);
}

/** An attribute with the value that a body gives it. */
interface Given {
  readonly target: AttributeReference;
  readonly raw: unknown;
}

/**
 * Finds the attributes that a body sets, by path. Keys may be nested, dotted, or prefixed with a URN. `null` sets
 * nothing.
 * @throws DomainError `invalid_value` for an attribute with two values, or an unclear reference to the critical
 * attribute
 */
function givenIn(
  body: unknown,
  resource: ResourceSchema,
  critical: CriticalAttribute,
): Map<string, Given> {
  if (!isObject(body)) throw new DomainError('invalid_request', 'The body must be a JSON object.');
  const given = new Map<string, Given>();
  for (const [key, raw] of entriesOf(body, resource)) {
    if (raw === null) continue;
    const target = findAttribute(resource, key);
    if (
      target?.path !== critical &&
      (refersTo(critical, key) || containsReferenceTo(critical, raw))
    ) {
      throw invalidValue(critical, 'is referenced in a way that is not understood');
    }
    if (!target || !isWritable(target)) continue;
    if (given.has(target.path)) throw invalidValue(target.path, 'occurs twice');
    given.set(target.path, { target, raw });
  }
  return given;
}

function draftFrom(given: ReadonlyMap<string, Given>): Draft {
  const draft: Draft = new Map();
  for (const { target, raw } of given.values()) {
    if (target.path === 'active' && isEmpty(raw)) throw invalidValue('active', 'has no value');
    put(draft, target, raw);
  }
  return draft;
}

/** The entries of a body; the attributes of a nested schema get their full names. */
function entriesOf(
  body: Readonly<Record<string, unknown>>,
  resource: ResourceSchema,
): (readonly [string, unknown])[] {
  return Object.entries(body).flatMap(([key, raw]): (readonly [string, unknown])[] => {
    const schema = findSchema(resource, key);
    if (!schema || !isObject(raw)) return [[key, raw]];
    return Object.entries(raw).map(([inner, value]) => [`${schema.id}:${inner}`, value] as const);
  });
}

function put(draft: Draft, target: AttributeReference, raw: unknown): void {
  const { attribute, sub } = target;
  const path = rootPath(target);
  if (!sub) {
    const value = readValue(attribute, raw);
    if (value !== undefined) merge(draft, path, value);
  } else if (!attribute.multiValued) {
    const parts = [[sub, readSimple(sub, raw, target.path)]] as const;
    draft.set(path, withParts(complexIn(draft, path), parts));
  }
}

/** Merges the parts of a complex value: a body may have both `name` and `name.givenName`. */
function merge(draft: Draft, path: string, value: AttributeValue): void {
  const before = complexIn(draft, path);
  draft.set(path, before && isComplex(value) ? Object.assign(before, value) : value);
}
