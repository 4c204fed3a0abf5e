import type { PlainAnswer } from '../../server/transport.js';
import { path, type AdminClient } from '../acts/admin-client.js';
import { allOf, idOf } from '../acts/named.js';

/**
 * The path of the API for targets: applications, AWS roles, groups of hosts and GitHub
 * installations.
 */
export const TARGETS_PATH = '/api/v1/org/access';

/** Matches a target by its kind and its id, such as `host_group/0199…`. */
const KIND_AND_ID = /^([a-z_]+)\/([\w-]+)$/;

/** A person or a group that a rule admits, by the id of the member or of the group. */
export type RuleAssignment = { readonly user: string } | { readonly group: string };

/** The rule by which a target admits people, as `PUT` of the API takes it. */
export interface WholeRule {
  readonly access: 'everyone' | 'assigned';
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly assignments: readonly RuleAssignment[];
}

/** A target in a list of the API. */
export interface ListedTarget {
  readonly kind: string;
  readonly id: string;
  readonly name: string;
  readonly access: 'everyone' | 'assigned';
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly assigned: { readonly users: number; readonly groups: number };
}

/**
 * A target with its rule, and the answer of the server, which has the entity tag for a later
 * change.
 */
export interface ReadTarget {
  readonly target: ListedTarget & WholeRule;
  readonly answer: PlainAnswer;
}

/**
 * Returns the path in the API of a target that the user names by `KIND/ID`, or by its whole name.
 * @throws CliFailure if no target, or several, have the name
 */
export async function findTarget(admin: AdminClient, text: string): Promise<string> {
  const named = KIND_AND_ID.exec(text);
  if (named) return path`/api/v1/org/access/${named[1] ?? ''}/${named[2] ?? ''}`;
  const targets = await allOf<ListedTarget>(admin, TARGETS_PATH, 'targets', {
    q: text,
    limit: '200',
  });
  const candidates = targets.map((each) => ({ id: `${each.kind}/${each.id}`, names: [each.name] }));
  return findTarget(admin, idOf('target', text, candidates));
}

/** Reads the target at a path of the API, with its rule. */
export async function readTarget(admin: AdminClient, to: string): Promise<ReadTarget> {
  const answer = await admin.request('GET', to);
  return { target: JSON.parse(answer.text) as ReadTarget['target'], answer };
}
