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

/** A group as clients describe it. */
export interface GroupAttributes {
  readonly displayName: string;
  readonly externalId: string | undefined;
  /** The ids as they came, each once. */
  readonly members: readonly string[];
}

/**
 * Reads the body of a POST, or of a PUT on `current`, which keeps its `userName` and `active` where the body has none:
 * an update of a profile brings nobody back. Unknown and read-only attributes, `schemas` and `password` are ignored.
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
 * Reads the body of a POST or PUT of a group. Without `members` it has none.
 * @throws DomainError as {@link readUser}
 */
export function readGroup(body: unknown): GroupAttributes {
  const given = givenIn(body, GROUP_SCHEMA, 'members');
  const members = memberIds(given.get('members')?.raw);
  given.delete('members'); // they have rows of their own, and no limit of a list
  const draft = draftFrom(given);
  const [displayName, externalId] = ['displayName', 'externalId'].map((name) =>
    groupText(name, draft.get(name)),
  );
  if (displayName === undefined) throw missing('displayName');
  return { displayName, externalId, members };
}

/** A text of a group, trimmed where it is a name; undefined for an empty one. */
export function groupText(path: string, value: AttributeValue | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = path === 'displayName' ? value.trim() : value;
  return text === '' ? undefined : limited(path, text);
}

function missing(name: string): DomainError {
  return new DomainError('invalid_request', `${name} is required.`);
}

/** An attribute a body sets, and what to. */
interface Given {
  readonly target: AttributeReference;
  readonly raw: unknown;
}

/**
 * What a body sets, by path: nested, or with dotted or URN keys. `null` sets nothing.
 * @throws DomainError `invalid_value` for an attribute that is there twice, or a mention of `critical` that is not understood
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
      throw invalidValue(critical, 'is there in a way that is not understood');
    }
    if (!target || !isWritable(target)) continue;
    if (given.has(target.path)) throw invalidValue(target.path, 'is there twice');
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

/** The members of a body, those of a nested schema under their full names. */
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

/** `name` and `name.givenName` may both be there; they are parts of one. */
function merge(draft: Draft, path: string, value: AttributeValue): void {
  const before = complexIn(draft, path);
  draft.set(path, before && isComplex(value) ? Object.assign(before, value) : value);
}
