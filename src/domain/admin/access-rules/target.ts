import { TARGET_KINDS, type Conditions, type TargetKind } from '#domain/access/reach/decision.js';
import { isUuid } from '#platform/text/single-line.js';

/** The most roles and groups of hosts that an organization has together. */
export const MOST_TARGETS = 1000;

/** The most patterns of hosts, and the most logins, of a group of hosts. */
export const MOST_OF_GROUP = 100;

/** The most assignments of a target. */
export const MOST_ASSIGNMENTS = 1000;

/** The longest condition on the age of a touch in seconds. No session is longer. */
export const LONGEST_AGE = 86_400;

/** The name of a role or of a group of hosts. The name of a group is a part of principals. */
export const TARGET_NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** The name of an account on a host. */
export const LOGIN_NAME = /^[a-z_][a-z0-9_-]{0,31}$/;

/** The kinds of targets that admins make and delete. */
export type MadeKind = 'aws_role' | 'host_group';

/**
 * A target as a request names it: an application by its `client_id`, an installation by its number,
 * a role or a group of hosts by the id of the target.
 */
export interface TargetRef {
  readonly kind: TargetKind;
  readonly id: string;
}

/** The rule of a target: everyone or assigned people, and the conditions. */
export interface Rule {
  readonly access: 'everyone' | 'assigned';
  readonly conditions: Conditions;
}

/** A rule with all of its assignments, as an admin wants it. */
export interface WantedRule extends Rule {
  readonly users: readonly string[];
  readonly groups: readonly string[];
}

/** A target of an organization. */
export interface Target extends Rule {
  /** The id of the target. {@link refOf} has the id by which requests name it. */
  readonly id: string;
  readonly kind: TargetKind;
  readonly name: string;
  readonly clientId: string | null;
  /** True for an application of kind `kubernetes`. */
  readonly isCluster: boolean;
  readonly installationId: string | null;
  readonly roleArn: string | null;
  readonly region: string | null;
  readonly hosts: readonly string[];
  readonly logins: readonly string[];
  /** Rises with each change by an admin. */
  readonly version: string;
  readonly updatedAt: Date;
  /** The number of assigned people. */
  readonly assignedUsers: number;
  /** The number of assigned groups. */
  readonly assignedGroups: number;
}

/** An assignment of a target, with names for pages. */
export type Assignment =
  | { readonly user: string; readonly email: string | null; readonly name: string | null }
  | { readonly group: string; readonly name: string };

/** Returns the id by which requests name a target. */
export function refOf({ kind, clientId, installationId, id }: Target): TargetRef {
  return { kind, id: clientId ?? installationId ?? id };
}

/** Returns a kind of target; undefined for another text. */
export function targetKind(text: string): TargetKind | undefined {
  return TARGET_KINDS.find((kind) => kind === text);
}

/** Returns true if a text can be the id of a target of a kind. Any other text names no target. */
export function isTargetId({ kind, id }: TargetRef): boolean {
  if (kind === 'application') return /^[\w-]{1,64}$/.test(id);
  return kind === 'github_installation' ? /^[1-9]\d{0,14}$/.test(id) : isUuid(id);
}

/**
 * Returns true if the list of people whom a rule admits shows who is in a group. One assigned group
 * is enough: the rule itself names the other people in the list, and a second group may be empty.
 */
export function isOfGroups({
  access,
  assignedGroups,
}: Pick<Target, 'access' | 'assignedGroups'>): boolean {
  return access === 'assigned' && assignedGroups > 0;
}

/** A thing that remains valid after a change until it ends by itself. */
export interface NotRecalled {
  readonly what: 'jwt' | 'aws_token' | 'aws_session' | 'ssh_connection';
  /** The longest time in seconds; null for a time that the service does not know. */
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

/** Returns what the service cannot recall when the reach of a target ends. */
export function notRecalled(kind: TargetKind): readonly NotRecalled[] {
  return NOT_RECALLED[kind];
}
