import type { AdmittedBy, Conditions } from '#domain/access/reach/decision.js';
import type { OwnReach } from '#domain/account/own-reach/own-reach.js';

/**
 * The largest number of targets of one kind on the start page. The page `/account/reach` shows all
 * of them.
 */
const MOST_OF_KIND = 24;

/**
 * The words for the reason why a target admits a person. They name no group, because who is in a
 * group may be confidential.
 */
const BECAUSE: Readonly<Record<AdmittedBy, string>> = {
  everyone: 'everyone in your organization may',
  person: 'an admin assigned you',
  group: 'a group that you are in is assigned',
};

/** A target that admits the user, such as a host or an application, for a page. */
export interface ReachedTarget {
  readonly name: string;
  /**
   * Further lines about the target: the patterns of hosts, the ARN of a role, or the resource of a
   * cluster.
   */
  readonly lines: readonly string[];
  readonly conditions: readonly string[];
  readonly because: string;
}

/** The targets of one kind that admit a user, for a page. */
export interface ReachedKind {
  readonly id: string;
  readonly title: string;
  readonly targets: readonly ReachedTarget[];
}

/**
 * Returns a target with its conditions in words, and in words the reason why it admits the user.
 */
function target(
  { because, conditions }: { readonly because: AdmittedBy; readonly conditions: Conditions },
  name: string,
  lines: readonly (string | null)[] = [],
): ReachedTarget {
  return {
    name,
    lines: lines.filter((line): line is string => line !== null && line !== ''),
    conditions: conditionWords(conditions),
    because: BECAUSE[because],
  };
}

/** Returns the targets that admit a person, by their kind and in words, for a page. */
export function reachedKinds(reach: OwnReach): ReachedKind[] {
  return [
    {
      id: 'applications',
      title: 'Applications',
      targets: reach.applications.map((one) => target(one, one.name, [one.launchUrl])),
    },
    {
      id: 'hosts',
      title: 'Hosts',
      targets: reach.hosts.map((one) => target(one, one.name, [one.hosts.join(', '), logins(one)])),
    },
    {
      id: 'roles',
      title: 'AWS roles',
      targets: reach.roles.map((one) => target(one, one.name, [one.roleArn, one.region])),
    },
    {
      id: 'clusters',
      title: 'Clusters',
      targets: reach.clusters.map((one) => target(one, one.name, [one.resource])),
    },
    {
      id: 'owners',
      title: 'GitHub',
      targets: reach.owners.map((one) => target(one, one.owner)),
    },
  ];
}

/** Returns the first targets of a list, and the number of the targets that are left out. */
function shown<Target>(list: readonly Target[]) {
  return { targets: list.slice(0, MOST_OF_KIND), more: Math.max(0, list.length - MOST_OF_KIND) };
}

/**
 * Returns the targets for the start page: of each kind the first ones, and the number of those that
 * are left out.
 */
export function launcherOf(reach: OwnReach) {
  const { applications, hosts, roles, clusters, owners } = reach;
  return {
    applications: shown(applications),
    hosts: shown(hosts.map((one) => ({ ...one, as: logins(one) }))),
    roles: shown(roles),
    clusters: shown(clusters),
    owners: shown(owners),
  };
}

/**
 * Returns in words the Unix accounts that a person may use on the hosts of a group; an empty text
 * if there is none.
 */
function logins({ logins: names }: { readonly logins: readonly string[] }): string {
  return names.length === 0 ? '' : `as ${names.join(' or ')}`;
}

/** Returns the conditions of a target in words, one phrase for each. */
export function conditionWords(conditions: Conditions): string[] {
  const { touchWithinSeconds: seconds, models, userVerification } = conditions;
  return [
    ...(seconds === null ? [] : [`a touch of your key in the last ${spanWords(seconds)}`]),
    ...(models === null ? [] : ['a key of a model with a FIPS 140 certificate']),
    ...(userVerification === null ? [] : ['the PIN or fingerprint of your key']),
  ];
}

function spanWords(seconds: number): string {
  const [size, unit] =
    seconds % 3600 === 0 ? [3600, 'hour'] : seconds % 60 === 0 ? [60, 'minute'] : [1, 'second'];
  const number = seconds / size;
  return `${number} ${unit}${number === 1 ? '' : 's'}`;
}
