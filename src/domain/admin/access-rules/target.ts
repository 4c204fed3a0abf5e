import { TARGET_KINDS, type Conditions, type TargetKind } from '#domain/access/reach/decision.js';
import { isUuid } from '#platform/text/single-line.js';

/** The most roles and groups of hosts that an organization has together. */
export const MOST_TARGETS = 1000;

/** The most host name patterns, and also the most login names, that a group of hosts can have. */
export const MOST_OF_GROUP = 100;

/** The most assignments that a target can have. */
export const MOST_ASSIGNMENTS = 1000;

/**
 * The greatest age of the last touch of a security key, in seconds, that a condition can allow. It
 * is one day. A greater age would have no effect, because every session is shorter.
 */
export const LONGEST_AGE = 86_400;

/**
 * The form of the name of an AWS role or of a group of hosts. It is short and plain, because the
 * name of a group becomes a part of principals in SSH certificates.
 */
export const TARGET_NAME = /^[a-z][a-z0-9-]{0,31}$/;

/**
 * The form of a login name: the name of an account on a host, to which a group of hosts gives
 * access.
 */
export const LOGIN_NAME = /^[a-z_][a-z0-9_-]{0,31}$/;

/**
 * The kinds of targets that admins make and delete themselves. Other targets come with an
 * application or an installation.
 */
export type MadeKind = 'aws_role' | 'host_group';

/**
 * A target as a request names it. The `id` of an application is its `client_id`, and that of an
 * installation its number at GitHub. A role or a group of hosts has the id of its row.
 */
export interface TargetRef {
  readonly kind: TargetKind;
  readonly id: string;
}

/**
 * The access rule of a target. It admits everyone or only assigned people, and may have conditions,
 * such as a recent touch of the security key.
 */
export interface Rule {
  readonly access: 'everyone' | 'assigned';
  readonly conditions: Conditions;
}

/** A rule with all of its assignments, as an admin wants to set it. */
export interface WantedRule extends Rule {
  readonly users: readonly string[];
  readonly groups: readonly string[];
}

/**
 * A target of an organization: something to which its people can get access, such as an AWS role.
 */
export interface Target extends Rule {
  /**
   * The id of the target in the database. {@link refOf} returns the id by which requests name the
   * target.
   */
  readonly id: string;
  readonly kind: TargetKind;
  readonly name: string;
  readonly clientId: string | null;
  /** True if the target is an application of kind `kubernetes`. */
  readonly isCluster: boolean;
  readonly installationId: string | null;
  readonly roleArn: string | null;
  readonly region: string | null;
  readonly hosts: readonly string[];
  readonly logins: readonly string[];
  /** The version, which rises with each change by an admin. */
  readonly version: string;
  readonly updatedAt: Date;
  /** The number of people who are assigned by name. */
  readonly assignedUsers: number;
  /** The number of assigned groups, whose members `assignedUsers` does not count. */
  readonly assignedGroups: number;
}

/** An assignment of a person or a group to a target, with the names that pages show. */
export type Assignment =
  | { readonly user: string; readonly email: string | null; readonly name: string | null }
  | { readonly group: string; readonly name: string };

/** Returns the id by which requests name a target, which differs from kind to kind. */
export function refOf({ kind, clientId, installationId, id }: Target): TargetRef {
  return { kind, id: clientId ?? installationId ?? id };
}

/**
 * Returns the kind of target with a name such as `aws_role`; undefined if there is no such kind.
 */
export function targetKind(text: string): TargetKind | undefined {
  return TARGET_KINDS.find((kind) => kind === text);
}

/**
 * Returns true if `id` has the form that ids have for this kind of target. An id without this form
 * names no target, so the caller need not look it up.
 */
export function isTargetId({ kind, id }: TargetRef): boolean {
  if (kind === 'application') return /^[\w-]{1,64}$/.test(id);
  return kind === 'github_installation' ? /^[1-9]\d{0,14}$/.test(id) : isUuid(id);
}

/**
 * Returns true if the list of people that a rule admits shows who is in a group. One assigned group
 * is enough, because the rule itself names all other people in the list.
 */
export function isOfGroups({
  access,
  assignedGroups,
}: Pick<Target, 'access' | 'assignedGroups'>): boolean {
  return access === 'assigned' && assignedGroups > 0;
}

/** A credential that remains valid after a change of a rule until it expires by itself. */
export interface NotRecalled {
  readonly what: 'jwt' | 'aws_token' | 'aws_session' | 'ssh_connection';
  /**
   * The longest time, in seconds, for which the credential remains valid; null if the service does
   * not know it.
   */
  readonly seconds: number | null;
}

const NOT_RECALLED: Readonly<Record<TargetKind, readonly NotRecalled[]>> = {
  application: [{ what: 'jwt', seconds: 300 }],
  aws_role: [
    { what: 'aws_token', seconds: 300 },
    { what: 'aws_session', seconds: null },
  ],
  host_group: [{ what: 'ssh_connection', seconds: null }],
  github_installation: [],
};

/**
 * Returns the credentials that the service cannot recall when a person loses a target of this kind.
 */
export function notRecalled(kind: TargetKind): readonly NotRecalled[] {
  return NOT_RECALLED[kind];
}
