/**
 * The kinds of targets. A target is something to which the people of an organization can get
 * access, such as an AWS role or a group of hosts.
 */
export const TARGET_KINDS = [
  'application',
  'aws_role',
  'host_group',
  'github_installation',
] as const;

/** A kind of target. A Kubernetes cluster has no kind of its own because it is an application. */
export type TargetKind = (typeof TARGET_KINDS)[number];

/**
 * The conditions under which a user gets access to a target, such as an AWS role. One touch of a
 * security key in the session must meet all of them.
 */
export interface Conditions {
  /** The greatest age, in seconds, of the touch of a security key; null for any age. */
  readonly touchWithinSeconds: number | null;
  /** `fips-only`: the touched key must be of a FIPS 140 certified model; null for any model. */
  readonly models: 'fips-only' | null;
  /**
   * `required`: the key must have verified its user, for example by a PIN; null if a touch is
   * enough.
   */
  readonly userVerification: 'required' | null;
}

/**
 * The access rule of a target: it admits everyone, or only assigned people, and may have
 * conditions.
 */
export interface TargetRule extends Conditions {
  readonly orgId: string;
  readonly access: 'everyone' | 'assigned';
}

/** The last touch in a session by one security key. Times are in seconds since 1970. */
export interface KeyTouch {
  readonly at: number;
  /** The time of the last touch in which the key verified its user; null if there was none. */
  readonly uv: number | null;
  /** True if the model of the key is FIPS 140 certified. */
  readonly fips: boolean;
}

/** The facts that decide if a user may use (“reaches”) a target. */
export interface ReachFacts {
  /** The access rule of the target; null if there is no such target. */
  readonly target: TargetRule | null;
  readonly person: { readonly orgId: string | null; readonly active: boolean };
  /** True if the person is assigned to the target by name. */
  readonly isAssigned: boolean;
  /** True if a group in which the person is a member is assigned to the target. */
  readonly isInGroup: boolean;
  /**
   * The touches of a session, one for each key. Null if there is no session; the conditions of the
   * target are then not checked.
   */
  readonly touches: readonly KeyTouch[] | null;
}

/**
 * The kind of rule that admits a user, for an explanation. It is `group` and never the name of a
 * group, so that an explanation does not tell in which groups a user is.
 */
export type AdmittedBy = 'everyone' | 'person' | 'group';

/**
 * The reason why a user may not use a target. `inactive`: the account is deactivated.
 * `not_assigned`: no rule admits the user. Any other value names the condition that no touch of a
 * security key meets.
 */
export type NotAdmittedBy = 'inactive' | 'not_assigned' | 'touch' | 'models' | 'user_verification';

/** The decision if a user may use (“reaches”) a target, with its reason. */
export type ReachDecision =
  | { readonly allowed: true; readonly because: AdmittedBy }
  | { readonly allowed: false; readonly because: NotAdmittedBy };

/** The conditions of a target that has none: every touch of any security key is accepted. */
export const NO_CONDITIONS: Conditions = {
  touchWithinSeconds: null,
  models: null,
  userVerification: null,
};

/**
 * Decides if a person may use (“reaches”) a target. One assignment that admits the person is
 * enough. If the target does not exist, the decision is the same as without an assignment. An
 * assignment counts only in the organization that owns the target.
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
 * Returns the kind of rule that admits a user. If several kinds admit the user, it returns the
 * first of `everyone`, `person` and `group`; if none does, undefined.
 */
function admittedBy(target: TargetRule, facts: ReachFacts): AdmittedBy | undefined {
  if (target.access === 'everyone') return 'everyone';
  if (facts.person.orgId !== target.orgId) return undefined;
  if (facts.isAssigned) return 'person';
  return facts.isInGroup ? 'group' : undefined;
}

/** Returns true if a target has a condition that the touch of a security key must meet. */
export function hasConditions(conditions: Conditions): boolean {
  const { touchWithinSeconds, models, userVerification } = conditions;
  return touchWithinSeconds !== null || models !== null || userVerification !== null;
}

/**
 * Returns the time of the newest touch, in seconds since 1970, by a key that the conditions accept;
 * null if there is none. It does not check the age. If the user must be verified, the time is that
 * of the newest touch with such a verification.
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
 * Returns the condition that no touch of the session meets; undefined if one touch meets all
 * conditions.
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
