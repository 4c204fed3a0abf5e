import type { Conditions } from '#domain/access/reach/decision.js';
import type { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
import type { Losers } from '#domain/access-revocation/ended-reach/reach-ending.js';
import { sumOf, type RevokedCounts } from '#domain/access-revocation/revocable.js';
import type { EntityManager } from '#platform/database/statements/typeorm.js';
import { listAssignments } from './assignments.repository.js';
import { listsRoles } from './lists-roles.repository.js';
import {
  namesOf,
  onlyAdmittedBy,
  type DifferentPeople,
  type ListedPerson,
  type PeopleOfRule,
} from './reach-of-people.repository.js';
import {
  notRecalled,
  type NotRecalled,
  type Rule,
  type Target,
  type WantedRule,
} from './target.js';

/** A preview names at most this many people who gain a target, and at most as many who lose it. */
export const MOST_NAMED = 50;

/**
 * A preview counts the credentials that would end only if at most this many people would lose the
 * target.
 */
const MOST_LOSERS = 1000;

/** The people who gain a target by a change, or those who lose it. */
export interface PreviewedPeople {
  /**
   * The number of people who gain, or who lose, the target; `MOST_COUNTED` plus one if there are
   * more.
   */
  readonly count: number;
  /** The first people who gain, or who lose, the target, in the order of their ids. */
  readonly people: readonly ListedPerson[];
}

/**
 * A preview of a change of a rule, or of the deletion of a target. An admin sees the preview before
 * the change.
 */
export interface RulePreview {
  readonly gains: PreviewedPeople;
  readonly loses: PreviewedPeople;
  /**
   * The numbers of credentials that would end at once. Null if too many people would lose the
   * target, or hold too much there, to count them.
   */
  readonly ends: RevokedCounts | null;
  /**
   * The credentials that stay valid for a time after the change, because the service cannot recall
   * them; empty if it is certain that no person loses anything.
   */
  readonly notRecalled: readonly NotRecalled[];
}

/**
 * A preview that hides its content, because it could show who is in a group. The admin must first
 * touch a security key. The preview shows no number, and no warning that depends on a number.
 * Otherwise two previews, with and without one person, would show if the person is in a group.
 */
export interface HiddenPreview {
  readonly hidden: true;
}

/**
 * A change for which an admin asks a preview: another rule, or the deletion of a role or a group of
 * hosts.
 */
export type AskedChange = WantedRule | 'deleted';

/**
 * Compares the people that a target admits now with the people that it would admit after a change.
 * The preview is hidden if it could show who is in a group, and `mayName` is false.
 *
 * @param mayName true if the admin may see who is in a group, after a recent touch
 */
export async function previewChange(
  tx: EntityManager,
  orgId: string,
  target: Target,
  change: AskedChange,
  {
    mayName,
    endings,
  }: { readonly mayName: boolean; readonly endings: Pick<AccessEndings, 'countHeld'> },
): Promise<RulePreview | HiddenPreview> {
  const before = await peopleOf(tx, target);
  const after =
    change === 'deleted' ? await afterDeletion(tx, orgId, target) : peopleOfRule(change);
  if (!mayName && (hasGroups(before) || hasGroups(after))) return { hidden: true };
  const gains = await onlyAdmittedBy(tx, orgId, after, before, MOST_NAMED);
  const loses = await onlyAdmittedBy(tx, orgId, before, after, MOST_LOSERS);
  const ends = await countEnds(tx, target, losersOf(orgId, target, change, loses), endings);
  const unmet = change === 'deleted' ? undefined : narrower(target.conditions, change.conditions);
  const isNarrower = loses.count > 0 || unmet !== undefined || mayEndAny(ends);
  return {
    gains: await named(tx, gains),
    loses: await named(tx, loses),
    ends,
    notRecalled: isNarrower ? notRecalled(target.kind) : [],
  };
}

/** Returns the people that the rule of a target admits now. */
export async function peopleOf(tx: EntityManager, target: Target): Promise<PeopleOfRule> {
  if (target.access === 'everyone') return 'everyone';
  const assignments = await listAssignments(tx, target);
  return {
    users: assignments.flatMap((each) => ('user' in each ? [each.user] : [])),
    groups: assignments.flatMap((each) => ('group' in each ? [each.group] : [])),
  };
}

function peopleOfRule({ access, users, groups }: WantedRule): PeopleOfRule {
  return access === 'everyone' ? 'everyone' : { users, groups };
}

/**
 * Returns the people who could use a target after its deletion. For an AWS role that is everyone,
 * because without a rule every person may ask for the role. If the organization allows only listed
 * roles, or for any other kind of target, it is no one.
 */
async function afterDeletion(
  tx: EntityManager,
  orgId: string,
  { kind }: Target,
): Promise<PeopleOfRule> {
  const isFree = kind === 'aws_role' && !(await listsRoles(tx, orgId));
  return isFree ? 'everyone' : 'no one';
}

/**
 * Returns the people who would lose what they hold; undefined if they are too many. A rule for
 * everyone also admits people of other organizations to an application. No list of people has them,
 * and they lose it with the rule.
 */
function losersOf(
  orgId: string,
  target: Target,
  change: AskedChange,
  { count, ids }: DifferentPeople,
): Losers[] | undefined {
  if (change === 'deleted') return [{ userIds: null }];
  if (count > ids.length) return undefined;
  const unmet = narrower(target.conditions, change.conditions);
  const closes = target.access === 'everyone' && change.access === 'assigned';
  const outsidersOf = closes && target.kind === 'application' ? orgId : undefined;
  if (!unmet && outsidersOf === undefined) return [{ userIds: ids }];
  return [{ userIds: ids }, { unmet, outsidersOf, except: ids }];
}

async function countEnds(
  tx: EntityManager,
  target: Target,
  losers: readonly Losers[] | undefined,
  endings: Pick<AccessEndings, 'countHeld'>,
): Promise<RevokedCounts | null> {
  if (losers === undefined) return null;
  const counts: RevokedCounts[] = [];
  for (const each of losers) {
    const held = await endings.countHeld(tx, target, each);
    if (held === undefined) return null;
    counts.push(held);
  }
  return sumOf(counts);
}

/** Returns true if credentials would end, or if they are too many to know it. */
function mayEndAny(ends: RevokedCounts | null): boolean {
  return ends === null || Object.values(ends).some((count) => count > 0);
}

/**
 * Returns the new conditions of a rule if one of them asks for more than before, because they may
 * then end access; otherwise undefined. The trigger `queue_changed_targets` makes the same
 * comparison.
 */
function narrower(before: Conditions, after: Conditions): Conditions | undefined {
  const isNarrower =
    (after.touchWithinSeconds ?? Infinity) < (before.touchWithinSeconds ?? Infinity) ||
    (after.models !== null && after.models !== before.models) ||
    (after.userVerification !== null && after.userVerification !== before.userVerification);
  return isNarrower ? after : undefined;
}

/** Returns true if two rules are the same, apart from the people and groups that are assigned. */
export function isSameRule(one: Rule, other: Rule): boolean {
  return one.access === other.access && isSame(one.conditions, other.conditions);
}

/**
 * Returns true if two rules have the same conditions: touch age, key models and user verification.
 */
function isSame(one: Conditions, other: Conditions): boolean {
  return (
    one.touchWithinSeconds === other.touchWithinSeconds &&
    one.models === other.models &&
    one.userVerification === other.userVerification
  );
}

function hasGroups(people: PeopleOfRule): boolean {
  return typeof people !== 'string' && people.groups.length > 0;
}

async function named(tx: EntityManager, { count, ids }: DifferentPeople): Promise<PreviewedPeople> {
  return { count, people: await namesOf(tx, ids.slice(0, MOST_NAMED)) };
}
