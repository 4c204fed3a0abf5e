import type { GitHubInstallation } from '../app/answers.js';
import type { AdministeredInstallations } from '../app/user-installations.js';
import { DomainError } from '#platform/errors/domain-error.js';
import { asciiLowerCase } from '#platform/text/single-line.js';

/**
 * The installation that an admin wants to link, by its id or by the `login` (user name) of its
 * account at GitHub. Without both, none is named.
 */
export interface NamedInstallation {
  readonly installationId?: number | undefined;
  readonly owner?: string | undefined;
}

/**
 * Chooses the installation to link: the one that the admin named, or the only one that the admin
 * administers.
 *
 * @throws DomainError not_found; sign_in_refused for an installation that the admin can see but
 *   does not administer; invalid_request if several fit
 */
export function chooseLink(
  { administered, onlySeen }: AdministeredInstallations,
  named: NamedInstallation,
): GitHubInstallation {
  const fits = isNamed(named);
  const [only, another] = administered.filter(fits);
  if (only && !another) return only;
  if (another) {
    const owners = administered.map(({ owner }) => owner).join(', ');
    throw new DomainError('invalid_request', `Start again and name the owner: ${owners}.`);
  }
  const seen = onlySeen.find(fits);
  if (seen) {
    throw new DomainError(
      'sign_in_refused',
      `At GitHub you do not own ${seen.owner}. An owner must link it; the GitHub App needs the permission to read members.`,
    );
  }
  const detail = 'At GitHub you have no such installation. Install the GitHub App first.';
  throw new DomainError('not_found', detail);
}

function isNamed({ installationId, owner }: NamedInstallation) {
  return (one: GitHubInstallation): boolean =>
    (installationId === undefined || one.id === installationId) &&
    (owner === undefined || asciiLowerCase(one.owner) === asciiLowerCase(owner));
}
