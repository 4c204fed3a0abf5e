import type { StoredUser, UserAttributes } from './user-attributes.js';
import type { NextUser } from './scim-user-changes.service.js';
import type { ScimUser } from './scim-user.js';

/** A user as they are kept, as the language of SCIM reads them. */
export function storedUser(user: ScimUser): StoredUser {
  const { displayName, ...attributes } = JSON.parse(user.attributes) as Record<string, unknown>;
  return {
    userName: user.userName,
    externalId: user.externalId ?? undefined,
    active: user.active,
    displayName: typeof displayName === 'string' ? displayName : undefined,
    attributes,
  };
}

/** What a client made of a user, as it is kept. */
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

/** The most characters of a name made of others; the parts stay as long as they are. */
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

/** Where it is cut, no half of a character stays: PostgreSQL stores none. */
function cut(text: string): string {
  return text.length <= MAX_FULL_NAME
    ? text
    : text.slice(0, MAX_FULL_NAME).replace(/[\uD800-\uDBFF]$/, '');
}
