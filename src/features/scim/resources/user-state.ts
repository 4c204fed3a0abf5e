import { addressesOf } from '#domain/directory/record-addresses.js';
import { parseEmailAddress } from '#domain/organizations/email-address.js';
import type { NextUser } from '#domain/directory/provisioning/directory-users.repository.js';
import type { DirectoryUser } from '#domain/directory/provisioning/directory-user.js';
import { namesAddress } from '#domain/directory/provisioning/record-plan.js';
import type { LeftOut } from '#domain/directory/provisioning/scim-operation.js';
import { toSingleLine } from '#platform/text/single-line.js';
import {
  domainErrorOf,
  readStored,
  type RefusedPart,
  type StoredUser,
  type UserAttributes,
  type WrittenUser,
} from '../language/scim-language.js';

/** Converts a user from the form of the tables to the form of the package `scim-language`. */
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

/** Returns the e-mail address with which the user signs in; null if the user has none. */
function signInAddress({ userName, attributes }: UserAttributes): string | null {
  return addressesOf(userName, attributes['emails']).has[0]?.address ?? null;
}

/** Converts a user from the form of the package `scim-language` to the form of the tables. */
export function nextUser(user: UserAttributes): NextUser {
  const { displayName, attributes } = user;
  return {
    userName: user.userName,
    externalId: user.externalId ?? null,
    active: user.active,
    email: signInAddress(user),
    name: displayName ?? fullName(attributes['name']) ?? null,
    attributes: { ...(displayName === undefined ? {} : { displayName }), ...attributes },
  };
}

/**
 * Computes the state of a user after a write. The e-mail address with which the user signs in
 * changes only by a write that names the new address or changes which address comes first. It never
 * changes because another user gave up an address.
 */
export function stateAfter(
  current: DirectoryUser,
  { user, named, leftOut, endsAccess }: WrittenUser,
): NextUser {
  const next = { ...nextUser(user), leftOut: leftOut.map(leftOutOf), endsAccess };
  if (next.email === current.email) return next;
  const before = signInAddress(readStored(storedUser(current)));
  const { email } = next;
  const isTaken = email !== before || (email !== null && named.some((each) => holds(each, email)));
  // A SCIM record can take over a member who signed in before. The member then keeps the old e-mail
  // address only as long as the record names this address.
  const isKept = current.email === null || namesAddress(next, current.email);
  return isTaken || !isKept ? next : { ...next, email: current.email };
}

/** Describes a part of a write that was not applied, for the audit log. */
export function leftOutOf({ name, error }: RefusedPart): LeftOut {
  return { name: toSingleLine(name, LONGEST_NAME) ?? '', reason: domainErrorOf(error).code };
}

/** The largest number of characters in the name of a part that was not applied. */
const LONGEST_NAME = 128;

function holds(value: unknown, address: string): boolean {
  if (typeof value === 'string') return parseEmailAddress(value) === address;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((inner) => holds(inner, address));
}

/** The largest number of characters of a full name that is joined from its parts. */
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

/**
 * Shortens a full name. It does not cut between the two halves of a surrogate pair, because
 * PostgreSQL does not store a half alone.
 */
function cut(text: string): string {
  return text.length <= MAX_FULL_NAME
    ? text
    : text.slice(0, MAX_FULL_NAME).replace(/[\uD800-\uDBFF]$/, '');
}
