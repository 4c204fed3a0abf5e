import type { ReachDecision, TargetKind } from '#domain/access/reach/decision.js';
import { demandOf } from '#domain/access/issuance/refused-issuance.js';
import { hasConditions, type Conditions } from '#domain/access/reach/decision.js';
import type { NotRecalled, Target, WantedRule } from '#domain/admin/access-rules/target.js';

/** The kinds of targets in words: one, and many. */
export const KIND_WORDS: Readonly<Record<TargetKind, readonly [string, string]>> = {
  application: ['Application', 'Applications'],
  aws_role: ['AWS role', 'AWS roles'],
  host_group: ['Group of hosts', 'Groups of hosts'],
  github_installation: ['GitHub installation', 'GitHub installations'],
};

/** Says whom a rule admits: `Assigned: 3 people, 1 group`. */
export function ruleWords({
  access,
  assignedUsers,
  assignedGroups,
}: Pick<Target, 'access' | 'assignedUsers' | 'assignedGroups'>): string {
  if (access === 'everyone') return 'Everyone';
  if (assignedUsers + assignedGroups === 0) return 'No one';
  const parts = [
    counted(assignedUsers, 'person', 'people'),
    counted(assignedGroups, 'group', 'groups'),
  ].filter((part) => part !== '');
  return `Assigned: ${parts.join(', ')}`;
}

/** Says the same of a rule that is only proposed. */
export function wantedWords({ access, users, groups }: WantedRule): string {
  return ruleWords({ access, assignedUsers: users.length, assignedGroups: groups.length });
}

/** Says what a target demands of a touch; undefined without a condition. */
export function conditionWords(conditions: Conditions): string | undefined {
  return hasConditions(conditions) ? `Needs ${demandOf(conditions)}` : undefined;
}

const BECAUSE: Readonly<Record<ReachDecision['because'], string>> = {
  everyone: 'The target admits everyone.',
  person: 'The person is assigned.',
  group: 'A group of the person is assigned.',
  inactive: 'The account is deactivated.',
  not_assigned: 'The person is not assigned.',
  touch: 'The touch is too old.',
  models: 'No touch was by a certified key.',
  user_verification: 'No touch was with a PIN.',
};

/** Says why a person reaches a target, or does not. It never names a group. */
export function becauseWords({ because }: ReachDecision): string {
  return BECAUSE[because];
}

const NOT_RECALLED: Readonly<Record<NotRecalled['what'], (time: string) => string>> = {
  jwt: (time) => `A JWT that was issued already is valid for ${time} at most.`,
  aws_token: (time) =>
    `A token for AWS that was issued already can be exchanged for ${time} at most.`,
  aws_session: () => 'A session at AWS ends by its own time. End it at AWS if it must not go on.',
  ssh_connection: () => 'A connection to a host that is open stays open. A new one is refused.',
};

/** Says what stays valid until it ends by itself. */
export function notRecalledWords({ what, seconds }: NotRecalled): string {
  return NOT_RECALLED[what](minutes(seconds));
}

function minutes(seconds: number | null): string {
  return seconds === null ? 'its own time' : counted(Math.ceil(seconds / 60), 'minute', 'minutes');
}

/** Says a number of items; empty for none. */
export function counted(n: number, one: string, many: string): string {
  return n === 0 ? '' : `${n} ${n === 1 ? one : many}`;
}
