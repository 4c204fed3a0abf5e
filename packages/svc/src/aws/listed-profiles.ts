import { CliFailure } from '../program/failure.js';
import { HostileList, type ListedRole } from '../reach/own-reach.js';
import { profileName, type AwsNote, type AwsProfile } from './profiles.js';
import { assertRegion, assertRole } from './session/role-choices.js';

/**
 * Adds profiles for the roles that a server lists, and removes those of roles that it does not list
 * any more. A profile that the user made is kept, and its role gets no second profile.
 *
 * @param isTaken returns true if the user has a profile of this name that the command did not write
 * @throws HostileList for a role or region that the options would refuse
 */
export function withListedRoles(
  before: AwsNote,
  roles: readonly ListedRole[],
  { server, isTaken }: { readonly server: string; readonly isTaken: (name: string) => boolean },
): AwsNote {
  const isListed = ({ server: of, listed }: AwsProfile) => of === server && listed === true;
  const known = Object.entries(before);
  const own = known.filter(([, profile]) => !isListed(profile));
  const after = new Map<string, AwsProfile>(own);
  for (const { name, role_arn: role, region } of roles) {
    assertListed(server, role, region);
    if (own.some(([, profile]) => profile.server === server && profile.role === role)) continue;
    const earlier = known.find(([, profile]) => isListed(profile) && profile.role === role);
    const free = (wanted: string) => !after.has(wanted) && !isTaken(wanted);
    const profile = earlier?.[0] ?? freeName(name, role, free);
    after.set(profile, { server, role, ...(region !== null && { region }), listed: true });
  }
  return Object.fromEntries(after);
}

/**
 * Checks a role from the server's list by the same rules as the options `--role` and `--region`,
 * because both are written into `~/.aws/config`.
 */
function assertListed(server: string, role: string, region: string | null): void {
  try {
    assertRole(role, 'a role', '');
    if (region !== null) assertRegion(region, 'a region', '');
  } catch (error) {
    if (!(error instanceof CliFailure)) throw error;
    throw new HostileList(server, `a role of another form: ${JSON.stringify([role, region])}`);
  }
}

/**
 * Chooses the name of a profile: the name of the role at the server, without characters that a
 * profile must not have. If another profile has that name, `svc-`, the account or a number is
 * added. The result is never `default`.
 */
function freeName(name: string, role: string, isFree: (name: string) => boolean): string {
  const [, , , , account = ''] = role.split(':');
  const plain = name.replaceAll(/[^\w.@:+-]+/g, '-').replaceAll(/^-+|-+$/g, '');
  const base = plain === '' || plain === 'default' ? 'svc' : plain.slice(0, 40);
  const candidates = [base, `svc-${base}`, `${base}-${account}`];
  for (let number = 2; number < 1000; number += 1) candidates.push(`${base}-${number}`);
  return profileName(candidates.find(isFree), role);
}
