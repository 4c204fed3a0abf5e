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
import type { CriticalAttribute } from './critical-attribute.js';
import { complexIn, isComplex, isWritable, limited, rootPath, type Draft } from './draft.js';
import { memberIds } from './member-ids.js';
import {
  partsLeftOut,
  resemblanceOf,
  unclearValue,
  type RefusedPart,
  type Refuse,
} from './refused-part.js';
import {
  findAttribute,
  findSchema,
  GROUP_SCHEMA,
  USER_SCHEMA,
  type AttributeReference,
  type ResourceSchema,
} from './schemas.js';
import {
  checkLength,
  draftOf,
  userOf,
  type StoredUser,
  type UserAttributes,
} from './user-attributes.js';
import { finished, namesAddress, refusedPart, type WrittenUser } from './written-user.js';

/** A group as the body of a request describes it. */
export interface GroupAttributes {
  readonly displayName: string;
  readonly externalId: string | undefined;
  /** The ids of the members, without duplicates. */
  readonly members: readonly string[];
}

/**
 * Reads the body of a POST of a user. Unknown and read-only attributes, `schemas` and `password`
 * are ignored.
 * @throws DomainError `invalid_request` if a required attribute is missing, `invalid_value` if one
 *   is wrong
 */
export function readUser(body: unknown): UserAttributes {
  const draft = draftFrom(givenIn(body, NEW_USER), throwPart);
  const userName = draft.get('userName');
  if (typeof userName !== 'string' || userName.trim() === '') throw missing('userName');
  return userOf(draft);
}

const NEW_USER = {
  resource: USER_SCHEMA,
  critical: 'active',
  isNew: true,
  refuse: throwPart,
} as const;

function throwPart({ kind, error }: RefusedPart): void {
  if (kind !== 'dropped') throw error;
}

/**
 * Reads the body of a PUT of a user. A PUT without `userName` or `active` keeps the values of
 * `current`, so that an update of a profile never reactivates a user. A PUT with `active: false`
 * keeps what it cannot apply, and is not refused for it.
 *
 * @param taken the error of an earlier attempt, for a `userName` that another user has
 * @throws DomainError `invalid_request` for a body that is no object, `invalid_value` if an
 *   attribute is wrong
 */
export function readReplacement(
  body: unknown,
  current: StoredUser,
  taken?: DomainError,
): WrittenUser {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const given = givenIn(body, { resource: USER_SCHEMA, critical: 'active', refuse });
  if (taken && given.delete('userName')) {
    refuse({ kind: 'fault', name: 'userName', error: taken });
  }
  const draft = draftFrom(given, refuse);
  const userName = draft.get('userName');
  if (typeof userName === 'string' && userName.trim() === '') {
    draft.delete('userName');
    refuse({ kind: 'fault', name: 'userName', error: missing('userName') });
  }
  const said = draft.get('active');
  const before = draftOf(current);
  // What a write leaves out stays as it is.
  for (const path of ['userName', 'active', ...refused.map(({ name }) => name)]) {
    const value = before.get(path);
    if (!draft.has(path) && value !== undefined) draft.set(path, value);
  }
  const named = [...given.values()].filter(
    ({ target }) => namesAddress(target) && !refused.some(({ name }) => name === target.path),
  );
  const written = { draft, named: named.map(({ raw }) => raw), refused };
  const understood = { hasCritical: said !== undefined, endsAccess: said === false, operations: 1 };
  return finished(written, current, understood);
}

/**
 * Reads the body of a POST of a group. A body without `members` means a group without members.
 * @throws DomainError as {@link readUser}
 */
export function readGroup(body: unknown): GroupAttributes {
  const given = givenIn(body, { ...GROUP, isNew: true, refuse: throwPart });
  const { displayName, externalId, members } = groupIn(given, throwPart);
  if (displayName === undefined) throw missing('displayName');
  return { displayName, externalId, members };
}

const GROUP = { resource: GROUP_SCHEMA, critical: 'members' } as const;

/** A group after a PUT. */
export interface ReplacedGroup {
  /** Undefined if the body has a name that cannot be applied. */
  readonly displayName: string | undefined;
  readonly externalId: string | undefined;
  readonly members: readonly string[];
  /** The parts of a PUT without members that cannot be applied. */
  readonly leftOut: readonly RefusedPart[];
}

/**
 * Reads the body of a PUT of a group. A PUT without members ends memberships, and is not refused
 * for what it cannot apply.
 *
 * @param taken the error of an earlier attempt, for a `displayName` that another group has
 * @throws DomainError as {@link readUser}
 */
export function readGroupReplacement(body: unknown, taken?: DomainError): ReplacedGroup {
  const refused: RefusedPart[] = [];
  const refuse: Refuse = (part) => refused.push(part);
  const given = givenIn(body, { ...GROUP, refuse });
  if (!given.has('displayName') && !refused.some(isOf('displayName'))) {
    throw missing('displayName');
  }
  const hasMembers = given.has('members');
  const group = groupIn(given, refuse);
  const isNamed = group.displayName !== undefined || refused.some(isOf('displayName'));
  if (taken || !isNamed) {
    refuse({ kind: 'fault', name: 'displayName', error: taken ?? missing('displayName') });
  }
  // A name that resembles `members` may stand for the members that the body seems to lack.
  const mayHaveMembers = hasMembers ? isOf('members') : mayNameMembers;
  const endsAccess = group.members.length === 0 && !refused.some(mayHaveMembers);
  const leftOut = partsLeftOut(refused, { hasCritical: hasMembers, endsAccess, operations: 1 });
  return { ...group, displayName: taken ? undefined : group.displayName, leftOut };
}

const isOf = (path: string) => (part: RefusedPart) => part.name === path;

function mayNameMembers({ kind, name }: RefusedPart): boolean {
  return kind === 'unclear' || kind === 'lookalike' || name === 'members';
}

/** Reads the attributes of a group. The members are rows, and have no limit of a list. */
function groupIn(given: Map<string, Given>, refuse: Refuse) {
  const members = attempt(given.get('members'), refuse, ({ raw }) => memberIds(raw)) ?? [];
  given.delete('members');
  const draft = draftFrom(given, refuse);
  const [displayName, externalId] = ['displayName', 'externalId'].map((name) =>
    attempt(given.get(name), refuse, () => groupText(name, draft.get(name))),
  );
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
 * A resource type with its critical attribute, and the receiver of the parts that are not
 * understood.
 */
interface Reading {
  readonly resource: ResourceSchema;
  readonly critical: CriticalAttribute;
  readonly refuse: Refuse;
  /** True for a POST, if an unknown name that resembles the critical attribute is ignored. */
  readonly isNew?: boolean;
}

/**
 * Finds the attributes that a body sets, by path. Keys may be nested, dotted, or prefixed with a
 * URN. `null` sets nothing. An attribute with two values is refused and not set.
 * @throws DomainError `invalid_request` for a body that is no object
 */
function givenIn(body: unknown, reading: Reading): Map<string, Given> {
  const { resource, refuse } = reading;
  if (!isObject(body)) throw new DomainError('invalid_request', 'The body must be a JSON object.');
  const given = new Map<string, Given>();
  const twice = new Set<string>();
  for (const [key, raw] of entriesOf(body, resource)) {
    if (raw === null) continue;
    const target = findAttribute(resource, key);
    if (isUnclear(key, raw, target, reading) || !target || !isWritable(target)) continue;
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
 * Refuses a reference to the critical attribute that is not understood, and a name that may mean
 * it.
 */
function isUnclear(
  key: string,
  raw: unknown,
  target: AttributeReference | undefined,
  { resource, critical, refuse, isNew = false }: Reading,
): boolean {
  if (target?.path === critical) return false;
  const named = { name: key, value: raw, isKnown: target !== undefined || isNew };
  const kind = resemblanceOf(critical, named, resource);
  if (kind !== undefined) refuse({ kind, name: key, error: unclearValue(critical) });
  return kind !== undefined;
}

/** Reads the values of attributes into a draft. */
function draftFrom(given: ReadonlyMap<string, Given>, refuse: Refuse): Draft {
  const draft: Draft = new Map();
  for (const each of given.values()) {
    attempt(each, refuse, ({ target, raw }) => {
      if (target.path === 'active' && isEmpty(raw)) throw invalidValue('active', 'has no value');
      put(draft, target, raw);
    });
  }
  return draft;
}

/** Reads an attribute, and refuses one that cannot be applied. */
function attempt<Value>(
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
    if (value === undefined) return;
    checkLength(path, value);
    merge(draft, path, value);
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
