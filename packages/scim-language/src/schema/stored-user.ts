import { ScimError } from '../errors/scim-error.js';
import {
  checkSize,
  invalidValue,
  isObject,
  storedValue,
  withoutLabels,
  type AttributeValue,
} from './attribute-value.js';
import { isWritable, limited, textIn, type Draft } from './draft.js';
import { RESOURCE_SIZE } from './resource-size.js';
import { attributesOf, USER_SCHEMA, type AttributeReference } from './schemas.js';

/**
 * Attributes in the form in which they are stored. Names are canonical, and no value is empty. The
 * attributes of an extension are under its URN.
 */
export interface StoredAttributes {
  readonly [name: string]: AttributeValue | Readonly<Record<string, AttributeValue>>;
}

/**
 * A user as the body of a request describes it. `attributes` has all attributes that are not listed
 * here by name.
 */
export interface UserAttributes {
  readonly userName: string;
  readonly externalId: string | undefined;
  readonly active: boolean;
  readonly displayName: string | undefined;
  readonly attributes: StoredAttributes;
}

/** A user as a service stores it. Attributes that the schema does not have are ignored. */
export type StoredUser = Omit<UserAttributes, 'attributes'> & {
  readonly attributes: Readonly<Record<string, unknown>>;
};

/**
 * The largest number of bytes that all attributes of a resource may have together. It is the
 * largest number that a request body can contain.
 */
const MAX_BYTES = RESOURCE_SIZE;

/**
 * The attributes that {@link UserAttributes} lists by name. A service stores each of them in a
 * column.
 */
const COLUMNS: ReadonlySet<string> = new Set(['userName', 'externalId', 'active', 'displayName']);

/**
 * Makes a draft, which can be changed, of a stored user. Changes of the draft do not change the
 * user.
 */
export function draftOf(user: StoredUser): Draft {
  const draft: Draft = new Map([
    ['userName', user.userName],
    ['active', user.active],
  ] as [string, AttributeValue][]);
  if (user.externalId !== undefined) draft.set('externalId', user.externalId);
  if (user.displayName !== undefined) draft.set('displayName', user.displayName);
  for (const target of attributesOf(USER_SCHEMA)) {
    if (COLUMNS.has(target.path) || !isWritable(target)) continue;
    const holder = target.extension
      ? ownMember(user.attributes, target.extension)
      : user.attributes;
    const value = storedValue(target.attribute, ownMember(holder, target.attribute.name));
    if (value !== undefined) draft.set(target.path, value);
  }
  return draft;
}

function ownMember(of: unknown, name: string): unknown {
  return isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined;
}

/**
 * Makes a user from a draft.
 * @throws ScimError `invalidValue` if `userName` is missing, or a value is too large
 */
export function userOf(draft: Draft): UserAttributes {
  const userName = textIn(draft, 'userName')?.trim() ?? '';
  if (userName === '') throw noUserName();
  const attributes = storedAttributes(draft);
  return {
    userName,
    externalId: textIn(draft, 'externalId'),
    active: draft.get('active') !== false,
    displayName: textIn(draft, 'displayName'),
    attributes,
  };
}

/**
 * Reads a stored user and normalizes it, as a write without any change would do.
 * @throws ScimError in the cases of {@link userOf}
 */
export function readStored(user: StoredUser): UserAttributes {
  return userOf(draftOf(user));
}

/**
 * Checks a new value of `userName`, `externalId`, `active` or `displayName`, which have limits of
 * their own.
 * @throws ScimError `invalidValue` for a text that is too long for an index, or an empty `userName`
 */
export function checkColumn(path: string, value: AttributeValue): void {
  if (path === 'userName' && typeof value === 'string' && value.trim() === '') throw noUserName();
  checkLength(path, value);
}

/**
 * Checks the length of a text that a service stores in an indexed column.
 *
 * @throws ScimError `invalidValue` for a text that is too long for an index
 */
export function checkLength(path: string, value: AttributeValue): void {
  if (COLUMNS.has(path) && typeof value === 'string') limited(path, value);
}

function noUserName(): ScimError {
  return invalidValue('userName', 'must have a value');
}

/**
 * Collects the attributes that {@link UserAttributes} does not list by name. Every key is a name of
 * the schema. If the collected attributes are too large together, the photos are left out.
 * @throws ScimError `invalidValue` if they are too large even without the photos
 */
function storedAttributes(draft: Draft): StoredAttributes {
  const stored = emptyRecord<AttributeValue | Record<string, AttributeValue>>();
  for (const { extension, attribute, path } of attributesOf(USER_SCHEMA)) {
    const value = COLUMNS.has(path) ? undefined : kept(attribute, draft.get(path));
    if (value === undefined) continue;
    if (extension === undefined) {
      stored[attribute.name] = value;
    } else {
      const inner = (stored[extension] ??= emptyRecord<AttributeValue>());
      (inner as Record<string, AttributeValue>)[attribute.name] = value;
    }
  }
  if (isTooLarge(stored)) delete stored['photos'];
  if (isTooLarge(stored)) {
    throw new ScimError('invalidValue', `All attributes together exceed ${MAX_BYTES} bytes.`);
  }
  return stored;
}

function isTooLarge(stored: object): boolean {
  return Buffer.byteLength(JSON.stringify(stored)) > MAX_BYTES;
}

/**
 * Removes the elements of a list that have only the labels `type` and `primary`; undefined if no
 * element is left.
 *
 * @throws ScimError invalidValue for too many or too long elements
 */
function kept(
  attribute: AttributeReference['attribute'],
  value: AttributeValue | undefined,
): AttributeValue | undefined {
  if (!Array.isArray(value)) return value;
  const elements = withoutLabels(value);
  checkSize(attribute, elements);
  return elements.length === 0 ? undefined : elements;
}

function emptyRecord<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>;
}
