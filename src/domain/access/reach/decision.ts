/** The kinds of targets that people of an organization reach. */
export const TARGET_KINDS = [
  'application',
  'aws_role',
  'host_group',
  'github_installation',
] as const;

/** A kind of target. Clusters are applications. */
export type TargetKind = (typeof TARGET_KINDS)[number];

/** The demands of a target on the touch in a session. One touch must meet all of them. */
export interface Conditions {
  /** The greatest age of the touch in seconds; null for any age. */
  readonly touchWithinSeconds: number | null;
  /** `fips-only`: the touch was by a key of a model that is certified by FIPS 140. */
  readonly models: 'fips-only' | null;
  /** `required`: the key verified its user, for example by a PIN. */
  readonly userVerification: 'required' | null;
}

/** The rule of a target: it admits everyone, or only assigned people. */
export interface TargetRule extends Conditions {
  readonly orgId: string;
  readonly access: 'everyone' | 'assigned';
}

/** The last touch in a session by one security key. Times are in seconds since 1970. */
export interface KeyTouch {
  readonly at: number;
  /** The last touch with user verification; null without one. */
  readonly uv: number | null;
  /** True for a model that is certified by FIPS 140. */
  readonly fips: boolean;
}

/** The facts by which the reach of a person is decided. */
export interface ReachFacts {
  /** The rule of the target; null if there is no such target. */
  readonly target: TargetRule | null;
  readonly person: { readonly orgId: string | null; readonly active: boolean };
  /** True for an assignment that names the person. */
  readonly isAssigned: boolean;
  /** True for an assignment of a group in which the person is a member. */
  readonly isInGroup: boolean;
  /**
   * The touches of a session, one for each key; null if there is no session: then the conditions of
   * the target are not checked.
   */
  readonly touches: readonly KeyTouch[] | null;
}

/** The kind of rule that admits a person. It never names a group. */
export type AdmittedBy = 'everyone' | 'person' | 'group';

/** The reason why a person has no reach. */
export type NotAdmittedBy = 'inactive' | 'not_assigned' | 'touch' | 'models' | 'user_verification';

/** The decision, with its explanation. */
export type ReachDecision =
  | { readonly allowed: true; readonly because: AdmittedBy }
  | { readonly allowed: false; readonly because: NotAdmittedBy };

/** The conditions of a target that demands nothing of the touch. */
export const NO_CONDITIONS: Conditions = {
  touchWithinSeconds: null,
  models: null,
  userVerification: null,
};

/**
 * Decides if a person reaches a target. One assignment that admits the person is enough. If there
 * is no such target, or it belongs to another organization, the answer is the same as without an
 * assignment.
 *
 * @param now seconds since 1970
 */
export function decideReach(facts: ReachFacts, now: number): ReachDecision {
  const { target, person, touches } = facts;
  if (!person.active) return refused('inactive');
  const because = target && admittedBy(target, facts);
  if (!because) return refused('not_assigned');
  const unmet = touches && unmetCondition(target, touches, now);
  return unmet ? refused(unmet) : { allowed: true, because };
}

/**
 * Returns the kind of rule that admits a person; if there are several, the one that admits the most
 * people. Returns undefined if none does.
 */
function admittedBy(target: TargetRule, facts: ReachFacts): AdmittedBy | undefined {
  if (target.access === 'everyone') return 'everyone';
  if (facts.person.orgId !== target.orgId) return undefined;
  if (facts.isAssigned) return 'person';
  return facts.isInGroup ? 'group' : undefined;
}

/** Returns true if a target has a condition. */
export function hasConditions(conditions: Conditions): boolean {
  const { touchWithinSeconds, models, userVerification } = conditions;
  return touchWithinSeconds !== null || models !== null || userVerification !== null;
}

/**
 * Returns the newest touch by a key that fits the conditions, in seconds since 1970; null without
 * one. A touch by another key never renews it.
 */
export function fittingTouch(
  { models, userVerification }: Conditions,
  touches: readonly KeyTouch[],
): number | null {
  const fitting = touches
    .filter(({ fips }) => models === null || fips)
    .map(({ at, uv }) => (userVerification === null ? at : uv))
    .filter((at) => at !== null);
  return fitting.length === 0 ? null : Math.max(...fitting);
}

/**
 * Returns the condition because of which no touch is enough; undefined if one touch meets all of
 * them.
 */
function unmetCondition(
  conditions: Conditions,
  touches: readonly KeyTouch[],
  now: number,
): NotAdmittedBy | undefined {
  if (!hasConditions(conditions)) return undefined;
  const at = fittingTouch(conditions, touches);
  const { touchWithinSeconds, models, userVerification } = conditions;
  if (at === null) {
    if (models !== null) return 'models';
    return userVerification === null ? 'touch' : 'user_verification';
  }
  return touchWithinSeconds === null || at >= now - touchWithinSeconds ? undefined : 'touch';
}

function refused(because: NotAdmittedBy): ReachDecision {
  return { allowed: false, because };
}
