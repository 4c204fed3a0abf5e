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

/** The description of the id of a target, for `/openapi.json`. */
const TARGET_ID =
  'The `client_id` of an application, the number of an installation, or the id of the target.';

/**
 * The path parameters of a target. This schema accepts any text, because an unknown kind or id gets
 * 404, and not 400.
 */
export const TARGET_PATH = z.object({
  kind: z
    .string()
    .describe(`The kind of the target: ${TARGET_KINDS.map((kind) => `\`${kind}\``).join(', ')}.`),
  id: z.string().describe(TARGET_ID),
});
/** The path parameter of a target that admins make: a role of AWS or a group of hosts. */
export const MADE_PATH = z.object({ id: z.string().describe('The id of the target.') });

/**
 * The query of the request that asks whether a person can use a target, such as an application or a
 * group of hosts.
 */
export const CHECK_QUERY = z.strictObject({
  user: z.string().max(64).describe('The id of the member.'),
  kind: z.string().max(64).describe('The kind of the target.'),
  id: z.string().max(64).describe(TARGET_ID),
});

const name = z
  .string()
  .regex(TARGET_NAME, 'must begin with a letter a-z and have at most 32 of a-z, 0-9 and hyphens')
  .describe('The name of the target.');

const arn = z
  .string()
  .max(LONGEST_ARN, `must have ${LONGEST_ARN} characters at most`)
  .regex(ROLE_ARN, 'must be the ARN of an IAM role')
  .describe('The ARN of the role.');

const region = z
  .string()
  .max(64)
  .regex(REGION, 'must be like eu-central-1')
  .describe('The region for a profile of the AWS CLI.');

const hosts = listOf(
  z.string().refine(isHostPattern, 'must be a pattern of host names, such as *.example.com'),
).describe('The patterns of the host names of the group.');

const logins = listOf(
  z
    .string()
    .regex(
      LOGIN_NAME,
      'must begin with a-z or _ and have at most 32 of a-z, 0-9, hyphens and underscores',
    ),
).describe('The login names on these hosts.');

function listOf(item: z.ZodString) {
  return z
    .array(item)
    .min(1, 'must not be empty')
    .max(MOST_OF_GROUP, `must have at most ${MOST_OF_GROUP} items`)
    .transform((items) => [...new Set(items)]);
}

/** The body of `POST /api/v1/org/access/aws_role`. */
export const NEW_ROLE = z
  .strictObject({ role_arn: arn, name, region: region.exactOptional() })
  .describe('The role to add.');
/** The body of `PATCH /api/v1/org/access/aws_role/{id}`. Null removes the region. */
export const CHANGE_ROLE = z
  .strictObject({
    role_arn: arn.exactOptional(),
    name: name.exactOptional(),
    region: region.nullable().exactOptional(),
  })
  .describe('The members to change.');
/** The body of `POST /api/v1/org/access/host_group`. */
export const NEW_HOST_GROUP = z
  .strictObject({ name, hosts, logins })
  .describe('The group of hosts to add.');
/** The body of `PATCH /api/v1/org/access/host_group/{id}`. */
export const CHANGE_HOST_GROUP = z
  .strictObject({
    name: name.exactOptional(),
    hosts: hosts.exactOptional(),
    logins: logins.exactOptional(),
  })
  .describe('The members to change.');

const CONDITIONS = z
  .strictObject({
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
  })
  .meta({ id: 'AccessConditions', description: 'The conditions on the login of a person.' });

const id = z
  .string()
  .refine(isUuid, 'must be an id')
  .transform((text) => text.toLowerCase());

const ASSIGNMENT = z
  .union([
    z
      .strictObject({ user: id.describe('The id of a member.') })
      .meta({ id: 'AssignedUser', description: 'A member.' }),
    z
      .strictObject({ group: id.describe('The id of a group of SCIM.') })
      .meta({ id: 'AssignedGroup', description: 'A group.' }),
  ])
  .meta({ id: 'Assignment', description: 'A member or a group whom the target admits.' });

const ACCESS_TEXT =
  '`everyone` of the organization, or the `assigned` people and groups. An application for `everyone` also admits people of other organizations who approve it.';

const RULE_FIELDS = {
  access: z.enum(['everyone', 'assigned']).describe(ACCESS_TEXT),
  conditions: CONDITIONS,
  assignments: z
    .array(ASSIGNMENT)
    .max(MOST_ASSIGNMENTS, `must have at most ${MOST_ASSIGNMENTS} items`)
    .describe('The people and groups, all of them.'),
};

/**
 * The body of `PUT /api/v1/org/access/{kind}/{id}`: the whole rule by which the target admits
 * people.
 */
export const RULE = z.strictObject(RULE_FIELDS).meta({
  id: 'WantedRule',
  description: 'The whole rule by which a target admits people.',
});
/** The body of `PUT /api/v1/org/access/{kind}/{id}` after validation, as the handler gets it. */
export type RuleBody = z.output<typeof RULE>;

/**
 * The body of a request for a forecast: another rule for a target, or the deletion of the target.
 * The forecast says who would gain and who would lose access.
 */
export const ASKED_CHANGE = z
  .union([
    RULE,
    z
      .strictObject({ deleted: z.literal(true).describe('The target is deleted.') })
      .meta({ id: 'Deletion', description: 'The deletion of the target.' }),
  ])
  .describe('Another rule, or the deletion of the target.');
/** The body of a request for a forecast after validation, as the handler gets it. */
export type AskedChangeBody = z.output<typeof ASKED_CHANGE>;

/**
 * Converts the body of a request to the rule of a target. A person or group that is listed twice is
 * kept once.
 */
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

/**
 * Converts the body of a request to the changes of a role of AWS. A member that is missing stays as
 * it is.
 */
export function roleChange(body: z.output<typeof CHANGE_ROLE>): TargetChange {
  const { role_arn: role, ...rest } = body;
  return { ...rest, ...(role !== undefined && { roleArn: role }) };
}

const NEXT = z
  .string()
  .nullable()
  .describe('The value of `after` for the next page; null on the last page.');

/** A target in a list of the API, such as an application or a group of hosts. */
export const TARGET_JSON = z
  .object({
    kind: z.enum(TARGET_KINDS).describe('The kind of the target.'),
    id: z.string().describe(TARGET_ID),
    name: z.string().describe('The name of the target.'),
    cluster: z.boolean().optional().meta({ description: 'True for a Kubernetes cluster.' }),
    role_arn: z.string().optional().describe('The ARN of a role of AWS.'),
    region: z.string().nullable().optional().describe('The region for a profile of the AWS CLI.'),
    hosts: z.array(z.string()).optional().describe('The patterns of the host names of a group.'),
    logins: z.array(z.string()).optional().describe('The login names on the hosts of a group.'),
    access: z.enum(['everyone', 'assigned']).describe(ACCESS_TEXT),
    conditions: CONDITIONS,
    assigned: z
      .object({
        users: z.int().describe('The number of assigned people.'),
        groups: z.int().describe('The number of assigned groups.'),
      })
      .describe('The numbers of assignments.'),
    version: z.string().describe('The version of the target, as in its `ETag`.'),
    updated_at: z.iso.datetime().describe('The time of its last change.'),
  })
  .meta({
    id: 'AccessTarget',
    description: 'An application, a role of AWS, a group of hosts or a GitHub installation.',
  });
/** The type of a target in a list of the API, by which the compiler checks answers. */
export type TargetJson = z.output<typeof TARGET_JSON>;

/** A target with its whole rule, which says which people the target admits. */
export const TARGET_RULE_JSON = TARGET_JSON.extend({
  assignments: z.array(ASSIGNMENT).describe('The people and groups whom it admits.'),
}).meta({ id: 'AccessRule', description: 'A target with its whole rule.' });
/**
 * The type of a target with its whole rule in the JSON of the API, by which the compiler checks
 * answers.
 */
export type TargetRuleJson = z.output<typeof TARGET_RULE_JSON>;

/** A page of targets in the JSON of the API. */
export const TARGETS_JSON = z
  .object({
    targets: z.array(TARGET_JSON).describe('The targets.'),
    next: NEXT,
  })
  .meta({ id: 'TargetPage', description: 'A page of targets.' });
/** The type of a page of targets in the JSON of the API, by which the compiler checks answers. */
export type TargetsJson = z.output<typeof TARGETS_JSON>;

/** The answer to a request that asks if a person can use a target. */
export const DECISION_JSON = z
  .object({
    allowed: z.boolean().describe('True if the member reaches the target.'),
    because: z
      .enum([
        'everyone',
        'person',
        'group',
        'inactive',
        'not_assigned',
        'touch',
        'models',
        'user_verification',
      ])
      .describe('The part of the rule that decides, or the condition that is not met.'),
  })
  .describe('Whether a member reaches a target, and why.');

const PERSON_JSON = z
  .object({
    id: z.guid().describe('The id of the member.'),
    email: z.string().nullable().describe('The address.'),
    name: z.string().nullable().describe('The name.'),
  })
  .meta({ id: 'AdmittedPerson', description: 'A member whom a target admits.' });

/** The people that a target admits, in the JSON of the API. */
export const PEOPLE_JSON = z
  .object({
    count: z
      .int()
      .describe('The number of people. At most 10,001, which stands for more than 10,000.'),
    people: z
      .array(PERSON_JSON)
      .nullable()
      .describe('The people; null without a recent touch, for a list that one group makes.'),
    next: NEXT,
  })
  .meta({ id: 'AdmittedPeople', description: 'A page of the people whom a target admits.' });
/**
 * The type of the people that a target admits, in the JSON of the API, by which the compiler checks
 * answers.
 */
export type PeopleJson = z.output<typeof PEOPLE_JSON>;

const SIDE = PEOPLE_JSON.omit({ next: true }).meta({
  id: 'PreviewSide',
  description: 'The people who gain or lose a target.',
});

/** A forecast of the effects of a change: the people who gain or lose access. */
export const PREVIEW_JSON = z
  .object({
    gains: SIDE.describe('The people who would gain the target.'),
    loses: SIDE.describe('The people who would lose the target.'),
    ends: ENDED_JSON.nullable().describe(
      'What would end now; null if more than 1,000 people lose the target, or if the change may concern more than 10,000 credentials.',
    ),
    not_recalled: z
      .array(
        z.object({
          what: z
            .enum(['jwt', 'aws_token', 'aws_session', 'ssh_connection'])
            .describe('The kind of credential.'),
          seconds: z
            .int()
            .nullable()
            .describe('The longest time that it lasts; null for any time.'),
        }),
      )
      .describe('What nobody can recall, and how long it lasts.'),
  })
  .meta({ id: 'AccessPreview', description: 'A forecast of the effects of a change.' });
/**
 * The type of a forecast of the effects of a change in the JSON of the API, by which the compiler
 * checks answers.
 */
export type PreviewJson = z.output<typeof PREVIEW_JSON>;

/** Renders a target as JSON. Members that do not apply to the kind of the target are left out. */
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

/** Renders a target as JSON with its whole rule, which names the assigned people and groups. */
export function targetRuleJson({ target, assignments }: TargetDetails): TargetRuleJson {
  return {
    ...targetJson(target),
    assignments: assignments.map((each) =>
      'user' in each ? { user: each.user } : { group: each.group },
    ),
  };
}

/** Renders a page of targets as JSON, without the assigned people and groups. */
export function targetsJson({ targets, next }: TargetPage): TargetsJson {
  return { targets: targets.map(targetJson), next };
}

/** Renders the answer whether a person can use a target, with the reason. */
export function decisionJson({ allowed, because }: ReachDecision): z.output<typeof DECISION_JSON> {
  return { allowed, because };
}

/** Renders the people that a target admits as JSON. `people` is null if the names are withheld. */
export function peopleJson({ count, people, next }: AdmittedPage): PeopleJson {
  return { count, people: people && people.map((person) => ({ ...person })), next };
}

/** Renders a forecast as JSON: the people who gain or lose access, and what would end. */
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
