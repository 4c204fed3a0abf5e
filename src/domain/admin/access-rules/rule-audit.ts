import type { AuditEvent } from '#domain/audit/audit-event.js';
import type { AuditOrigin } from '#domain/audit/audit-origin.js';
import type { Admin } from '#domain/directory/users.repository.js';
import type { Assigned, AssignmentChange } from './assignments.repository.js';
import { isSameRule } from './rule-preview.js';
import { refOf, type Rule, type Target } from './target.js';

/**
 * The most people and groups that one audit event names. A larger change is recorded in several
 * events.
 */
const MOST_NAMED = 100;

/** An act of an admin on a target or its access rule, with the origin of the request. */
export interface RuleAct {
  readonly admin: Admin;
  readonly origin: AuditOrigin;
  /**
   * A function that throws, and so refuses the act, if the target is no longer as the admin saw it.
   */
  readonly check?: ((target: Target) => void) | undefined;
}

/** A change of a target with its rule and assignments, for the audit log. */
export interface RuleChange extends Partial<AssignmentChange> {
  readonly change: 'created' | 'changed' | 'rule' | 'deleted';
  readonly before?: Target | undefined;
  readonly after: Target;
}

/**
 * Returns the audit events of a change. Each names the target, and has its rule or, for a change of
 * other values, the old and the new values. If such a change also changes the rule, the event has
 * both. A group is named by its id alone.
 */
export function eventsOf(
  { admin, origin }: RuleAct,
  { change, before, after, assigned = [], removed = [] }: RuleChange,
): AuditEvent[] {
  const { kind, name } = after;
  // A group of hosts whose new name was that of an earlier group takes the rule of that group.
  const isOtherRule = before !== undefined && !isSameRule(before, after);
  const details = {
    target: { kind, name, id: refOf(after).id },
    change,
    ...(change === 'changed' && valuesOf(before, after)),
    ...((change !== 'changed' || isOtherRule) && { rule: ruleOf(after) }),
    ...(before && (change === 'rule' || isOtherRule) && { earlier_rule: ruleOf(before) }),
  };
  const parts = Math.max(1, Math.ceil(Math.max(assigned.length, removed.length) / MOST_NAMED));
  return Array.from({ length: parts }, (_, part) => ({
    type: 'access_rule_changed',
    actorId: admin.id,
    subjectId: null,
    orgId: admin.orgId,
    origin,
    details: {
      ...details,
      ...partOf('assigned', assigned, part),
      ...partOf('removed', removed, part),
    },
  }));
}

function partOf(name: string, all: readonly Assigned[], part: number) {
  const named = all.slice(part * MOST_NAMED, (part + 1) * MOST_NAMED);
  return named.length === 0 ? {} : { [name]: named };
}

function ruleOf({ access, conditions }: Rule) {
  const { touchWithinSeconds, models, userVerification } = conditions;
  return {
    access,
    ...(touchWithinSeconds !== null && { touch_within_seconds: touchWithinSeconds }),
    ...(models !== null && { models }),
    ...(userVerification !== null && { user_verification: userVerification }),
  };
}

/** Returns the old and the new value of each property of a target that changed. */
function valuesOf(before: Target | undefined, after: Target) {
  const names = ['name', 'roleArn', 'region', 'hosts', 'logins'] as const;
  const changed = names.filter((key) => String(before?.[key]) !== String(after[key]));
  return {
    changed: Object.fromEntries(
      changed.map((key) => [
        key === 'roleArn' ? 'role_arn' : key,
        { from: before?.[key] ?? null, to: after[key] },
      ]),
    ),
  };
}
