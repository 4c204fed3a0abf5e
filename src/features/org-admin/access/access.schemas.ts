import { z } from 'zod';
import { TARGET_KINDS, type ReachDecision } from '#domain/access/reach/decision.js';
import type {
  AdmittedPage,
  TargetDetails,
  TargetPage,
} from '#domain/admin/access-rules/access-rules.service.js';
import type { RulePreview } from '#domain/admin/access-rules/rule-preview.js';
import type { WantedRule, Target } from '#domain/admin/access-rules/target.js';
import {
  LOGIN_NAME,
  LONGEST_AGE,
  MOST_ASSIGNMENTS,
  MOST_OF_GROUP,
  refOf,
  TARGET_NAME,
} from '#domain/admin/access-rules/target.js';
import type { TargetChange } from '#domain/admin/access-rules/targets.repository.js';
import { LONGEST_ARN, REGION, ROLE_ARN } from '#domain/aws/role-arn.js';
import { isHostPattern } from '@svc/openssh';
import { isUuid } from '#platform/text/single-line.js';
import { ENDED_JSON } from '../members/members.schemas.js';

/** The path parameters of a target. An unknown kind or id gets 404, and not 400. */
export const TARGET_PATH = z.object({ kind: z.string(), id: z.string() });
/** The path parameter of a role of AWS or a group of hosts. */
export const MADE_PATH = z.object({ id: z.string() });

/**
 * The query of the request that asks whether a person can use a target, such as an application or a
 * group of hosts.
 */
export const CHECK_QUERY = z.strictObject({
  user: z.string().max(64),
  kind: z.string().max(64),
  id: z.string().max(64),
});

const name = z
  .string()
  .regex(TARGET_NAME, 'must begin with a letter a-z and have at most 32 of a-z, 0-9 and hyphens');

const arn = z
  .string()
  .max(LONGEST_ARN, `must have ${LONGEST_ARN} characters at most`)
  .regex(ROLE_ARN, 'must be the ARN of an IAM role');

const region = z.string().max(64).regex(REGION, 'must be like eu-central-1');

const hosts = listOf(
  z.string().refine(isHostPattern, 'must be a pattern of host names, such as *.example.com'),
);

const logins = listOf(
  z
    .string()
    .regex(
      LOGIN_NAME,
      'must begin with a-z or _ and have at most 32 of a-z, 0-9, hyphens and underscores',
    ),
);

function listOf(item: z.ZodString) {
  return z
    .array(item)
    .min(1, 'must not be empty')
    .max(MOST_OF_GROUP, `must have at most ${MOST_OF_GROUP} items`)
    .transform((items) => [...new Set(items)]);
}

/** The body of `POST /api/v1/org/access/aws_role`. */
export const NEW_ROLE = z.strictObject({ role_arn: arn, name, region: region.exactOptional() });
/** The body of `PATCH /api/v1/org/access/aws_role/{id}`. Null removes the region. */
export const CHANGE_ROLE = z.strictObject({
  role_arn: arn.exactOptional(),
  name: name.exactOptional(),
  region: region.nullable().exactOptional(),
});
/** The body of `POST /api/v1/org/access/host_group`. */
export const NEW_HOST_GROUP = z.strictObject({ name, hosts, logins });
/** The body of `PATCH /api/v1/org/access/host_group/{id}`. */
export const CHANGE_HOST_GROUP = z.strictObject({
  name: name.exactOptional(),
  hosts: hosts.exactOptional(),
  logins: logins.exactOptional(),
});

const CONDITIONS = z.strictObject({
  touch_within_seconds: z
    .int()
    .min(1)
    .max(LONGEST_AGE)
    .exactOptional()
    .meta({ description: 'The greatest age of the touch of the security key.' }),
  models: z
    .literal('fips-only')
    .exactOptional()
    .meta({ description: 'The touch was by a key that is certified by FIPS 140.' }),
  user_verification: z
    .literal('required')
    .exactOptional()
    .meta({ description: 'The key verified its user, for example by a PIN.' }),
});

const id = z
  .string()
  .refine(isUuid, 'must be an id')
  .transform((text) => text.toLowerCase());

const ASSIGNMENT = z.union([z.strictObject({ user: id }), z.strictObject({ group: id })]);

const RULE_FIELDS = {
  access: z.enum(['everyone', 'assigned']),
  conditions: CONDITIONS,
  assignments: z
    .array(ASSIGNMENT)
    .max(MOST_ASSIGNMENTS, `must have at most ${MOST_ASSIGNMENTS} items`),
};

/**
 * The body of `PUT /api/v1/org/access/{kind}/{id}`: the whole rule by which the target admits
 * people.
 */
export const RULE = z.strictObject(RULE_FIELDS);
/** The body of `PUT /api/v1/org/access/{kind}/{id}` after validation. */
export type RuleBody = z.output<typeof RULE>;

/**
 * The body of a request for a forecast of who gains and loses access: by another rule, or by the
 * deletion of the target.
 */
export const ASKED_CHANGE = z.union([RULE, z.strictObject({ deleted: z.literal(true) })]);
/** The body of a request for a forecast after validation. */
export type AskedChangeBody = z.output<typeof ASKED_CHANGE>;

/** Converts a body to the rule of a target. */
export function wantedRule({ access, conditions, assignments }: RuleBody): WantedRule {
  return {
    access,
    conditions: {
      touchWithinSeconds: conditions.touch_within_seconds ?? null,
      models: conditions.models ?? null,
      userVerification: conditions.user_verification ?? null,
    },
    users: [...new Set(assignments.flatMap((each) => ('user' in each ? [each.user] : [])))],
    groups: [...new Set(assignments.flatMap((each) => ('group' in each ? [each.group] : [])))],
  };
}

/** Converts a body to the changes of a role of AWS. */
export function roleChange(body: z.output<typeof CHANGE_ROLE>): TargetChange {
  const { role_arn: role, ...rest } = body;
  return { ...rest, ...(role !== undefined && { roleArn: role }) };
}

/**
 * A target in a list of the API: an application, a role of AWS, a group of hosts or a GitHub
 * installation.
 */
export const TARGET_JSON = z
  .object({
    kind: z.enum(TARGET_KINDS),
    id: z.string().meta({
      description:
        'The `client_id` of an application, the number of an installation, or the id of the target.',
    }),
    name: z.string(),
    cluster: z.boolean().optional().meta({ description: 'True for a Kubernetes cluster.' }),
    role_arn: z.string().optional(),
    region: z.string().nullable().optional(),
    hosts: z.array(z.string()).optional(),
    logins: z.array(z.string()).optional(),
    access: z.enum(['everyone', 'assigned']),
    conditions: CONDITIONS,
    assigned: z.object({ users: z.int(), groups: z.int() }),
    version: z.string(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'AccessTarget' });
/** The type of a target in a list of the API. */
export type TargetJson = z.output<typeof TARGET_JSON>;

/** A target with its whole rule, which says whom the target admits. */
export const TARGET_RULE_JSON = TARGET_JSON.extend({ assignments: z.array(ASSIGNMENT) }).meta({
  id: 'AccessRule',
});
/** The type of a target with its whole rule in the JSON of the API. */
export type TargetRuleJson = z.output<typeof TARGET_RULE_JSON>;

/** A page of targets in the JSON of the API. */
export const TARGETS_JSON = z.object({
  targets: z.array(TARGET_JSON),
  next: z.string().nullable(),
});
/** The type of a page of targets in the JSON of the API. */
export type TargetsJson = z.output<typeof TARGETS_JSON>;

/** The answer to the question whether a person can use a target. */
export const DECISION_JSON = z.object({
  allowed: z.boolean(),
  because: z.enum([
    'everyone',
    'person',
    'group',
    'inactive',
    'not_assigned',
    'touch',
    'models',
    'user_verification',
  ]),
});

const PERSON_JSON = z.object({
  id: z.guid(),
  email: z.string().nullable(),
  name: z.string().nullable(),
});

/** The people whom a target admits. */
export const PEOPLE_JSON = z.object({
  count: z.int().meta({ description: 'At most 10,001, which stands for more than 10,000.' }),
  people: z
    .array(PERSON_JSON)
    .nullable()
    .meta({ description: 'Null without a recent touch, for a list that one group makes.' }),
  next: z.string().nullable(),
});
/** The type of the people whom a target admits in the JSON of the API. */
export type PeopleJson = z.output<typeof PEOPLE_JSON>;

const SIDE = PEOPLE_JSON.omit({ next: true });

/** A forecast of the effects of a change: the people who gain or lose access. */
export const PREVIEW_JSON = z.object({
  gains: SIDE,
  loses: SIDE,
  ends: ENDED_JSON.nullable().meta({
    description: 'What would end now; null if more than 1,000 people lose the target.',
  }),
  not_recalled: z.array(
    z.object({
      what: z.enum(['jwt', 'aws_token', 'aws_session', 'ssh_connection']),
      seconds: z.int().nullable(),
    }),
  ),
});
/** The type of a forecast of the effects of a change in the JSON of the API. */
export type PreviewJson = z.output<typeof PREVIEW_JSON>;

/** Renders a target as JSON. */
export function targetJson(target: Target): TargetJson {
  const { kind, isCluster, roleArn, region: inRegion, hosts: patterns, logins: accounts } = target;
  const { touchWithinSeconds, models, userVerification } = target.conditions;
  return {
    kind,
    id: refOf(target).id,
    name: target.name,
    ...(kind === 'application' && { cluster: isCluster }),
    ...(roleArn !== null && { role_arn: roleArn, region: inRegion }),
    ...(kind === 'host_group' && { hosts: [...patterns], logins: [...accounts] }),
    access: target.access,
    conditions: {
      ...(touchWithinSeconds !== null && { touch_within_seconds: touchWithinSeconds }),
      ...(models !== null && { models }),
      ...(userVerification !== null && { user_verification: userVerification }),
    },
    assigned: { users: target.assignedUsers, groups: target.assignedGroups },
    version: target.version,
    updated_at: target.updatedAt.toISOString(),
  };
}

/** Renders a target with its rule as JSON. */
export function targetRuleJson({ target, assignments }: TargetDetails): TargetRuleJson {
  return {
    ...targetJson(target),
    assignments: assignments.map((each) =>
      'user' in each ? { user: each.user } : { group: each.group },
    ),
  };
}

/** Renders a page of targets as JSON. */
export function targetsJson({ targets, next }: TargetPage): TargetsJson {
  return { targets: targets.map(targetJson), next };
}

/** Renders the answer to the question whether a person can use a target. */
export function decisionJson({ allowed, because }: ReachDecision): z.output<typeof DECISION_JSON> {
  return { allowed, because };
}

/** Renders the people whom a target admits as JSON. */
export function peopleJson({ count, people, next }: AdmittedPage): PeopleJson {
  return { count, people: people && people.map((person) => ({ ...person })), next };
}

/** Renders a forecast as JSON. */
export function previewJson({ gains, loses, ends, notRecalled: left }: RulePreview): PreviewJson {
  return {
    gains: side(gains),
    loses: side(loses),
    ends,
    not_recalled: left.map((each) => ({ ...each })),
  };
}

function side({ count, people }: RulePreview['gains']): z.output<typeof SIDE> {
  return { count, people: people.map((person) => ({ ...person })) };
}

/** Returns the entity tag of a target, which contains its version. */
export function targetTag({ version }: Target): string {
  return `"${version}"`;
}
