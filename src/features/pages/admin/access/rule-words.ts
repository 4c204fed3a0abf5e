import { demandOf } from '#domain/access/issuance/refused-issuance.js';
import {
  hasConditions,
  type Conditions,
  type ReachDecision,
  type TargetKind,
} from '#domain/access/reach/decision.js';
import { MOST_COUNTED } from '#domain/admin/access-rules/reach-of-people.repository.js';
import type { ReachPage } from '#domain/admin/access-rules/access-rules.service.js';
import {
  refOf,
  type NotRecalled,
  type Target,
  type WantedRule,
} from '#domain/admin/access-rules/target.js';
import { targetAddress } from './target-path.js';

/** The words for each kind of target, in the singular and the plural. */
export const KIND_WORDS: Readonly<Record<TargetKind, readonly [string, string]>> = {
  application: ['Application', 'Applications and clusters'],
  aws_role: ['AWS role', 'AWS roles'],
  host_group: ['Group of hosts', 'Groups of hosts'],
  github_installation: ['GitHub installation', 'GitHub installations'],
};

/**
 * Returns in words what a target is. A Kubernetes cluster has the kind `application`, but a page
 * calls it a cluster.
 */
export function kindWords({ kind, isCluster }: Pick<Target, 'kind' | 'isCluster'>): string {
  return isCluster ? 'Cluster' : KIND_WORDS[kind][0];
}

/**
 * Returns in words the people whom a target with the rule `everyone` admits. An application also
 * admits people of other organizations who approve it.
 */
export function everyoneWords({ kind, isCluster }: Pick<Target, 'kind' | 'isCluster'>): string {
  const own = 'Everyone in the organization';
  const isOpen = kind === 'application' && !isCluster;
  return isOpen ? `${own}, and people of other organizations who approve it` : own;
}

/** Returns in words how many people and groups a rule admits: `Assigned: 3 people, 1 group`. */
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

/** Returns in words how many people and groups a proposed rule would admit. */
export function wantedWords({ access, users, groups }: WantedRule): string {
  return ruleWords({ access, assignedUsers: users.length, assignedGroups: groups.length });
}

/**
 * Returns in words which touch of a key the conditions of a target demand; undefined if it has no
 * condition.
 */
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

/**
 * Returns in words the reason why a target admits a person, or does not. It never names a group,
 * because who is in a group may be confidential.
 */
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

/** Returns in words how long a credential stays valid although the service cannot revoke it. */
export function notRecalledWords({ what, seconds }: NotRecalled): string {
  return NOT_RECALLED[what](minutes(seconds));
}

function minutes(seconds: number | null): string {
  return seconds === null ? 'its own time' : counted(Math.ceil(seconds / 60), 'minute', 'minutes');
}

const NUMBER = new Intl.NumberFormat('en-GB');

/**
 * Returns in words a number of people that was counted up to a limit: `1 person`, `more than 10,000
 * people`.
 */
export function peopleWords(count: number): string {
  if (count > MOST_COUNTED) return `more than ${NUMBER.format(MOST_COUNTED)} people`;
  return `${NUMBER.format(count)} ${count === 1 ? 'person' : 'people'}`;
}

/** Returns in words a number of items; the empty string for zero. */
function counted(n: number, one: string, many: string): string {
  return n === 0 ? '' : `${n} ${n === 1 ? one : many}`;
}

/**
 * Returns the targets that admit one person, as a template shows them. Each has the reason why it
 * admits the person, in words.
 */
export function reachWords(page: ReachPage, userId: string) {
  return page.reached.map(({ target, decision }) => ({
    id: refOf(target).id,
    name: target.name,
    kind: kindWords(target),
    href: targetAddress(refOf(target)),
    why: `${targetAddress(refOf(target))}?user=${userId}#why`,
    because: becauseWords(decision),
    conditions: conditionWords(target.conditions),
  }));
}
