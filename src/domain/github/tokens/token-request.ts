import type { GitHubPermissions } from '../app/answers.js';
import type { LinkedInstallation } from '../installations/github-installations.repository.js';
import { asciiLowerCase } from '#platform/text/single-line.js';
import { DomainError } from '#platform/errors/domain-error.js';

/**
 * A request of a user for a GitHub token. Without `permissions` the token gets {@link
 * MOST_PERMISSIONS}.
 */
export interface AskedToken {
  readonly owner?: string | undefined;
  /** The repositories, each as its name or as `owner/name`. */
  readonly repositories?: readonly string[] | undefined;
  readonly permissions?: Readonly<Record<string, string>> | undefined;
}

/** The most permissions that a token of this service may have. */
export const MOST_PERMISSIONS: GitHubPermissions = { contents: 'write', metadata: 'read' };

/**
 * The rank of a level of access, by which two levels are compared: a higher level includes the
 * lower ones.
 */
const RANK: Readonly<Record<string, number>> = { read: 1, write: 2, admin: 3 };

/**
 * Returns the permissions that the service requests from GitHub. `metadata: read` is part of every
 * token.
 *
 * @throws DomainError invalid_request, permission_not_allowed for more than
 *   {@link MOST_PERMISSIONS}
 */
export function permissionsOf(asked: AskedToken['permissions']): GitHubPermissions {
  if (asked === undefined) return MOST_PERMISSIONS;
  if (Object.keys(asked).length === 0) {
    const detail = '`permissions` is empty: name at least one or leave it out.';
    throw new DomainError('invalid_request', detail);
  }
  if (!isWithin(asked, MOST_PERMISSIONS)) {
    throw new DomainError(
      'permission_not_allowed',
      'A token may have contents: write and metadata: read at most.',
    );
  }
  return { ...(asked as GitHubPermissions), metadata: 'read' };
}

/** Returns true if `most` names each of the permissions with the same or a higher level. */
export function isWithin(
  permissions: Readonly<Record<string, string>>,
  most: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(permissions).every(([name, level]) => {
    const rank = RANK[level];
    const highest = Object.hasOwn(most, name) ? RANK[most[name] ?? ''] : undefined;
    return rank !== undefined && highest !== undefined && rank <= highest;
  });
}

/**
 * Returns true if the named owner has one of the installations. If no owner is named, any
 * installation is enough.
 */
export function isNamedAmong(
  installations: readonly LinkedInstallation[],
  owner: string | undefined,
): boolean {
  return installations.some((one) => owner === undefined || isOwner(one, owner));
}

function isOwner(one: LinkedInstallation, owner: string): boolean {
  return asciiLowerCase(one.owner) === asciiLowerCase(owner);
}

/**
 * Chooses the installation of the owner that a request names. If it names no owner, chooses the
 * only one in the list.
 *
 * @throws DomainError not_found; invalid_request if several fit
 */
export function chooseInstallation(
  linked: readonly LinkedInstallation[],
  owner: string | undefined,
): LinkedInstallation {
  const named = owner === undefined ? linked : linked.filter((one) => isOwner(one, owner));
  const [only, another] = named;
  if (only === undefined) {
    throw new DomainError(
      'not_found',
      linked.length === 0
        ? 'Your organization has linked no GitHub installation. Ask an admin to link one.'
        : 'Your organization has linked no GitHub installation of this owner.',
    );
  }
  if (another === undefined) return only;
  const owners = [...new Set(named.map((one) => one.owner))];
  throw new DomainError(
    'invalid_request',
    `Name the \`owner\`: your organization has linked ${owners.join(', ')}.`,
  );
}

/**
 * Returns the names of the requested repositories without their owner and without duplicates;
 * undefined for every repository of the installation.
 *
 * @throws DomainError invalid_request for an empty list or a repository of another owner
 */
export function repositoriesOf(
  asked: AskedToken['repositories'],
  owner: string,
): string[] | undefined {
  if (asked === undefined) return undefined;
  if (asked.length === 0) {
    const detail = '`repositories` is empty: name at least one or leave it out.';
    throw new DomainError('invalid_request', detail);
  }
  const names = asked.map((repository) => {
    const [first = '', name, more] = repository.split('/');
    if (name === undefined) return first;
    if (more === undefined && asciiLowerCase(first) === asciiLowerCase(owner)) return name;
    throw new DomainError('invalid_request', `Each repository must be one of ${owner}.`);
  });
  return [...new Set(names)];
}
