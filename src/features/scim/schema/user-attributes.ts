import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { DomainError } from '#platform/errors/domain-error.js';
import {
  checkSize,
  invalidValue,
  isObject,
  isPrimary,
  storedValue,
  withoutLabels,
  type AttributeValue,
  type ComplexValue,
} from './attribute-value.js';
import { elementsIn, isWritable, textIn, type Draft } from './draft.js';
import { attributesOf, USER_SCHEMA, type AttributeReference } from './schemas.js';

/** Attributes as they are stored: canonical names, nothing empty, an extension's under its URN. */
export interface StoredAttributes {
  readonly [name: string]: AttributeValue | Readonly<Record<string, AttributeValue>>;
}

/** A user as clients describe them. What has a column of its own is not among the `attributes`. */
export interface UserAttributes {
  readonly userName: string;
  readonly externalId: string | undefined;
  readonly active: boolean;
  readonly displayName: string | undefined;
  /** The address they sign in with, derived and normalized; undefined when there is none. */
  readonly email: string | undefined;
  readonly attributes: StoredAttributes;
}

/** A user as they were stored; `email` is derived anew from the rest. */
export type StoredUser = Omit<UserAttributes, 'email' | 'attributes'> & {
  readonly attributes: Readonly<Record<string, unknown>>;
};

/** The most bytes of all attributes of a resource, as many as a request can bring. */
const MAX_BYTES = 65_536;

/** What has a column. */
const COLUMNS: ReadonlySet<string> = new Set(['userName', 'externalId', 'active', 'displayName']);

/** A stored user as a draft that can be changed without changing them. */
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
 * The user a draft describes.
 * @throws DomainError `invalid_value` where `userName` is missing, or anything is too large to keep
 */
export function userOf(draft: Draft): UserAttributes {
  const userName = textIn(draft, 'userName')?.trim() ?? '';
  if (userName === '') throw invalidValue('userName', 'must have a value');
  const attributes = storedAttributes(draft);
  return {
    userName,
    externalId: textIn(draft, 'externalId'),
    active: draft.get('active') !== false,
    displayName: textIn(draft, 'displayName'),
    email: emailOf(userName, elementsIn(draft, 'emails')),
    attributes,
  };
}

/** The first that is an address: `userName`, the primary e-mail, the others in their order. */
function emailOf(userName: string, emails: readonly ComplexValue[]): string | undefined {
  const [primary] = emails.filter(isPrimary);
  for (const candidate of [userName, primary?.['value'], ...emails.map(({ value }) => value)]) {
    const address = typeof candidate === 'string' ? parseEmailAddress(candidate) : undefined;
    if (address !== undefined) return address;
  }
  return undefined;
}

/** The JSON of everything without a column; every name in it is one of the schema table. */
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
  if (Buffer.byteLength(JSON.stringify(stored)) > MAX_BYTES) {
    throw new DomainError('invalid_value', `All attributes together exceed ${MAX_BYTES} bytes.`);
  }
  return stored;
}

/** What of a value is worth keeping. */
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
