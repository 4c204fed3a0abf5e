import { hash } from 'node:crypto';
import type { AdmittedBy, Conditions } from '#domain/access/reach/decision.js';
import { launchAddress } from '#domain/oauth/applications/launch-address.js';
import { displayName } from '#domain/oauth/clients/display-name.js';
import type { OwnReachRow } from './own-reach.repository.js';

/**
 * The reason why a target admits a person, and the conditions that the touch of a security key must
 * meet.
 */
interface Admission {
  readonly because: AdmittedBy;
  readonly conditions: Conditions;
}

/**
 * A group of hosts. `hosts` are patterns of host names, as in ssh_config. `logins` are the Unix
 * accounts that the person may use on these hosts.
 */
export interface ReachedHosts extends Admission {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly logins: readonly string[];
}

/** A role of AWS that the person may assume. */
export interface ReachedRole extends Admission {
  readonly name: string;
  readonly roleArn: string;
  readonly region: string | null;
}

/**
 * A Kubernetes cluster. `resource` is the resource indicator (RFC 8707) for which its tokens are
 * issued.
 */
export interface ReachedCluster extends Admission {
  readonly name: string;
  readonly resource: string;
}

/**
 * An account of an organization or a user at GitHub. The person gets tokens for repositories of
 * this account.
 */
export interface ReachedOwner extends Admission {
  readonly owner: string;
}

/** An application to which the person can sign in. */
export interface ReachedApplication extends Admission {
  readonly name: string;
  /** The URL at which a browser starts the sign-in; null if no admin has approved one. */
  readonly launchUrl: string | null;
}

/** The targets that admit one person, in one list for each kind. */
export interface OwnReach {
  readonly hosts: readonly ReachedHosts[];
  readonly roles: readonly ReachedRole[];
  readonly clusters: readonly ReachedCluster[];
  readonly owners: readonly ReachedOwner[];
  readonly applications: readonly ReachedApplication[];
}

/** Divides the targets that a person may use into one list for each kind. */
export function ownReach(rows: readonly OwnReachRow[]): OwnReach {
  const of = <Target>(
    kind: OwnReachRow['kind'],
    read: (row: OwnReachRow) => Target,
  ): (Target & Admission)[] =>
    rows.filter((row) => row.kind === kind).map((row) => ({ ...admissionOf(row), ...read(row) }));
  return {
    hosts: of('host_group', ({ name, hosts, logins }) => ({ name: name ?? '', hosts, logins })),
    roles: of('aws_role', ({ name, roleArn, region }) => ({
      name: name ?? '',
      roleArn: roleArn ?? '',
      region,
    })),
    clusters: of('cluster', (row) => ({ name: nameOf(row), resource: row.resource ?? '' })),
    owners: of('github_installation', ({ name }) => ({ owner: name ?? '' })),
    applications: of('application', (row) => ({
      name: nameOf(row),
      launchUrl: launchAddress({ metadata: row.metadata ?? {}, approvedUris: row.approvedUris }),
    })),
  };
}

/**
 * Returns a digest of the targets of a person. `timeOfOwnReach` compares it with the stored digest
 * to see if the targets have changed. The digest leaves out the reasons and the conditions, because
 * a change of these alone adds or removes no target.
 */
export function digestOf(reach: OwnReach): Buffer {
  const { because, conditions }: Record<keyof Admission, undefined> = {
    because: undefined,
    conditions: undefined,
  };
  const withoutRule = (targets: readonly Admission[]) =>
    targets.map((target) => ({ ...target, because, conditions }));
  const lists = Object.values(reach).map(withoutRule);
  return hash('sha256', JSON.stringify(lists), 'buffer');
}

function admissionOf(row: OwnReachRow): Admission {
  const { because, touchWithinSeconds, models, userVerification } = row;
  return { because, conditions: { touchWithinSeconds, models, userVerification } };
}

function nameOf({ name, clientId }: OwnReachRow): string {
  return displayName({ clientId: clientId ?? '', clientName: name ?? undefined });
}
