import { hasConditions, type Conditions } from '#domain/access/reach/decision.js';
import type { AccessEndings } from '#domain/access-revocation/ended-reach/access-endings.service.js';
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
import { notRecalled, type NotRecalled, type Target, type WantedRule } from './target.js';

/** The most people whom a preview names on each side. */
export const MOST_NAMED = 50;

/** The most people for whom a preview counts what ends. */
const MOST_LOSERS = 1000;

/** People on one side of a preview. */
export interface PreviewedPeople {
  /** The number of these people; `MOST_COUNTED` plus one if there are more. */
  readonly count: number;
  /** The first people. */
  readonly people: readonly ListedPerson[];
}

/** A forecast of a change of a rule, or of the end of a target. */
export interface RulePreview {
  readonly gains: PreviewedPeople;
  readonly loses: PreviewedPeople;
  /**
   * The items that would end now. Null if more people lose their reach than a preview counts for.
   */
  readonly ends: RevokedCounts | null;
  /** The credentials that the service cannot recall; empty if no person loses anything. */
  readonly notRecalled: readonly NotRecalled[];
}

/**
 * A forecast that could show who is in a group, so that the admin must touch the key first. It has
 * no number, and no warning that depends on one. Two previews, with and without one person, would
 * otherwise show if the person is in a group.
 */
export interface HiddenPreview {
  readonly hidden: true;
}

/** A change that an admin asks about: another rule, or the end of a role or a group of hosts. */
export type AskedChange = WantedRule | 'deleted';

/**
 * Compares the people whom a target admits now with those after a change.
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
  const unmet = change === 'deleted' ? undefined : narrower(target.conditions, change.conditions);
  const isNarrower = loses.count > 0 || unmet !== undefined;
  return {
    gains: await named(tx, gains),
    loses: await named(tx, loses),
    ends: await countEnds(tx, target, change, loses, unmet, endings),
    notRecalled: isNarrower ? notRecalled(target.kind) : [],
  };
}

/** Returns the people whom a target admits now. */
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
 * Returns the people whom a target admits after its deletion. A role of AWS without a row is open
 * to everyone, unless the organization lists its roles.
 */
async function afterDeletion(
  tx: EntityManager,
  orgId: string,
  { kind }: Target,
): Promise<PeopleOfRule> {
  const isFree = kind === 'aws_role' && !(await listsRoles(tx, orgId));
  return isFree ? 'everyone' : 'no one';
}

async function countEnds(
  tx: EntityManager,
  target: Target,
  change: AskedChange,
  loses: DifferentPeople,
  unmet: Conditions | undefined,
  endings: Pick<AccessEndings, 'countHeld'>,
): Promise<RevokedCounts | null> {
  if (change === 'deleted') return endings.countHeld(tx, target, { userIds: null });
  if (loses.count > loses.ids.length) return null;
  const held = await endings.countHeld(tx, target, { userIds: loses.ids });
  if (unmet === undefined) return held;
  return sumOf([held, await endings.countHeld(tx, target, { unmet, except: loses.ids })]);
}

/**
 * Returns the new conditions if there are any and they differ from those before; otherwise
 * undefined.
 */
function narrower(before: Conditions, after: Conditions): Conditions | undefined {
  return hasConditions(after) && !isSame(before, after) ? after : undefined;
}

/** Returns true for two equal sets of conditions. */
export function isSame(one: Conditions, other: Conditions): boolean {
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
