import { z } from 'zod';
import type { Named } from '#domain/admin/access-rules/assignments.repository.js';
import {
  LONGEST_AGE,
  MOST_ASSIGNMENTS,
  type Assignment,
  type WantedRule,
} from '#domain/admin/access-rules/target.js';
import { isUuid } from '#platform/text/single-line.js';

const ids = z
  .union([z.string(), z.array(z.string())])
  .default([])
  .transform((one) => [one].flat())
  .pipe(z.array(z.string().refine(isUuid, 'must be an id')).max(MOST_ASSIGNMENTS));

/**
 * The most characters in one text field of the form. The URL of the page contains three of these
 * texts, and must fit into the headers of a request.
 */
const LONGEST_TEXT = 2000;

const lines = z
  .string()
  .max(LONGEST_TEXT, `must have ${LONGEST_TEXT} characters at most. Change the rule in parts`)
  .default('')
  .transform((text) => text.split(/[\r\n]/).map((line) => line.trim()))
  .transform((texts) => [...new Set(texts.filter((text) => text !== ''))])
  .pipe(z.array(z.string().max(256)).max(MOST_ASSIGNMENTS));

/**
 * The fields of the form that proposes a rule. The form names only the people and groups to add and
 * to remove, so that the URL stays short for a target with many assignments.
 */
export const PROPOSAL = z.strictObject({
  /** The version of the target that the form showed. An admin may have changed it meanwhile. */
  version: z.string().max(20).optional(),
  access: z.enum(['everyone', 'assigned']),
  minutes: z
    .string()
    .trim()
    .regex(/^(\d{1,4}(\.\d{1,4})?)?$/, 'must be a number of minutes')
    .refine((text) => text === '' || Number(text) > 0, 'must be more than 0 minutes')
    .default(''),
  fips: z.literal('on').optional(),
  verification: z.literal('on').optional(),
  remove_user: ids,
  remove_group: ids,
  remove_people: lines,
  add_people: lines,
  add_group: lines,
});
/** The validated fields of the form that proposes a rule. */
export type Proposal = z.output<typeof PROPOSAL>;

/** The people and groups that a proposal names and that exist. */
export interface FoundNames {
  readonly added: Pick<Named, 'people' | 'groups'>;
  readonly removed: Pick<Named, 'people'>;
}

/** Returns the rule of a target after a proposal is applied to the present assignments. */
export function proposedRule(
  { access, minutes, fips, verification, ...proposal }: Proposal,
  assignments: readonly Assignment[],
  { added, removed }: FoundNames,
): WantedRule {
  // At least one second, because zero would mean that there is no condition.
  const seconds = Math.min(Math.max(Math.round(Number(minutes) * 60), 1), LONGEST_AGE);
  const gone = new Set([
    ...[...proposal.remove_user, ...proposal.remove_group].map((id) => id.toLowerCase()),
    ...removed.people.map(({ id }) => id),
  ]);
  const users = assignments.flatMap((each) => ('user' in each ? [each.user] : []));
  const groups = assignments.flatMap((each) => ('group' in each ? [each.group] : []));
  const kept = (present: readonly string[], found: readonly { readonly id: string }[]) => [
    ...new Set([...present.filter((id) => !gone.has(id)), ...found.map(({ id }) => id)]),
  ];
  return {
    access,
    conditions: {
      touchWithinSeconds: minutes === '' ? null : seconds,
      models: fips === undefined ? null : 'fips-only',
      userVerification: verification === undefined ? null : 'required',
    },
    users: kept(users, added.people),
    groups: kept(groups, added.groups),
  };
}

/**
 * Returns the body of the request that sets a rule. Each member is a text (JSON for objects and
 * lists), because the page puts it into a hidden field.
 */
export function bodyOf({ access, conditions, users, groups }: WantedRule) {
  const { touchWithinSeconds: seconds, models, userVerification } = conditions;
  return {
    access,
    conditions: JSON.stringify({
      ...(seconds !== null && { touch_within_seconds: seconds }),
      ...(models !== null && { models }),
      ...(userVerification !== null && { user_verification: userVerification }),
    }),
    assignments: JSON.stringify([
      ...users.map((user) => ({ user })),
      ...groups.map((group) => ({ group })),
    ]),
  };
}
