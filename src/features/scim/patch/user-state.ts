import { parseEmailAddress } from '#domain/organizations/email-address.js';
import { changesOf, type PatchOperation } from './patch-operations.js';
import { USER_SCHEMA } from '../schema/schemas.js';
import type { NextUser } from '#domain/directory/provisioning/directory-users.repository.js';
import type { DirectoryUser } from '#domain/directory/provisioning/directory-user.js';
import { namesAddress } from '#domain/directory/provisioning/record-plan.js';
import {
  draftOf,
  userOf,
  type StoredUser,
  type UserAttributes,
} from '../schema/user-attributes.js';

/** Converts a user of the tables to the form that the schema functions read. */
export function storedUser(user: DirectoryUser): StoredUser {
  const { displayName, ...attributes } = JSON.parse(user.attributes) as Record<string, unknown>;
  return {
    userName: user.userName,
    externalId: user.externalId ?? undefined,
    active: user.active,
    displayName: typeof displayName === 'string' ? displayName : undefined,
    attributes,
  };
}

/** Converts a user from a request to the form of the tables. */
export function nextUser(user: UserAttributes): NextUser {
  const { displayName, attributes } = user;
  return {
    userName: user.userName,
    externalId: user.externalId ?? null,
    active: user.active,
    email: user.email ?? null,
    name: displayName ?? fullName(attributes['name']) ?? null,
    attributes: { ...(displayName === undefined ? {} : { displayName }), ...attributes },
  };
}

/**
 * Derives the state of a user after a write. The address to sign in with changes only by a write that names the new
 * address, or that changes which address comes first: an address does not move to a user because another user gave it
 * up.
 *
 * @param operations the operations of the write; a PUT is one `replace` without a path
 */
export function stateAfter(
  current: DirectoryUser,
  user: UserAttributes,
  operations: readonly PatchOperation[],
): NextUser {
  const next = nextUser(user);
  if (next.email === current.email) return next;
  const before = userOf(draftOf(storedUser(current))).email ?? null;
  const isTaken = next.email !== before || (next.email !== null && isNamed(next.email, operations));
  // A member who was taken over keeps an address only while the record names it.
  const isKept = current.email === null || namesAddress(next, current.email);
  return isTaken || !isKept ? next : { ...next, email: current.email };
}

/** Tells whether a write names an address, in the userName or among the e-mails. */
function isNamed(address: string, operations: readonly PatchOperation[]): boolean {
  return operations
    .flatMap((operation) => changesOf(operation, USER_SCHEMA, 'active'))
    .some(({ op, path, value }) => {
      const [root] = path.target.path.split('.', 1);
      return op !== 'remove' && (root === 'userName' || root === 'emails') && holds(value, address);
    });
}

function holds(value: unknown, address: string): boolean {
  if (typeof value === 'string') return parseEmailAddress(value) === address;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => holds(inner, address));
}

/** The most characters of a full name that is joined from parts. */
const MAX_FULL_NAME = 256;

function fullName(name: unknown): string | undefined {
  if (typeof name !== 'object' || name === null) return undefined;
  const { formatted, givenName, familyName } = name as Record<string, unknown>;
  const parts =
    typeof formatted === 'string'
      ? [formatted]
      : [givenName, familyName].filter((part) => typeof part === 'string');
  return parts.length === 0 ? undefined : cut(parts.join(' '));
}

/** Cuts a name without leaving half a surrogate pair, which PostgreSQL does not store. */
function cut(text: string): string {
  return text.length <= MAX_FULL_NAME
    ? text
    : text.slice(0, MAX_FULL_NAME).replace(/[\uD800-\uDBFF]$/, '');
}
