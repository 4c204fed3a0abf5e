import { z } from 'zod';
import { MEMBERSHIPS } from '#domain/organizations/membership.js';
import { VISIBLE_LINE, isVisibleLine } from '#platform/text/single-line.js';

/** A line of text that an admin wrote: trimmed, not empty, at most 256 characters. */
export const LINE_OF_TEXT = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .refine((text) => Array.from(text).length <= 256, 'must have at most 256 characters')
  .refine(isVisibleLine, VISIBLE_LINE);

const AWS_ROLES = ['any', 'listed'] as const;

/** The descriptions of the settings of an organization, for `/openapi.json`. */
const SETTINGS = {
  name: 'The name of the organization.',
  membership: '`open`: people of its domains join by signing in; `scim_only`: by SCIM alone.',
  deviceGrant: 'False refuses the login by device codes (RFC 8628) to its people.',
  awsRoles:
    '`listed` gives tokens for AWS only for roles that are targets. It ends no session of AWS.',
} as const;

/** The body of `PATCH /api/v1/org`. Each setting is optional. */
export const CHANGE_ORGANIZATION = z
  .strictObject({
    name: LINE_OF_TEXT.exactOptional().describe(SETTINGS.name),
    membership: z.enum(MEMBERSHIPS).exactOptional().describe(SETTINGS.membership),
    device_grant: z.boolean().exactOptional().describe(SETTINGS.deviceGrant),
    aws_roles: z.enum(AWS_ROLES).exactOptional().describe(SETTINGS.awsRoles),
  })
  .describe('The settings to change.');
/** The body of `PATCH /api/v1/org` after validation, as the handler gets it. */
export type OrganizationChange = z.output<typeof CHANGE_ORGANIZATION>;

/** The settings of an organization in the JSON of the API. */
export const ORGANIZATION_JSON = z
  .object({
    name: z.string().describe(SETTINGS.name),
    membership: z.enum(MEMBERSHIPS).describe(SETTINGS.membership),
    device_grant: z.boolean().describe(SETTINGS.deviceGrant),
    aws_roles: z.enum(AWS_ROLES).describe(SETTINGS.awsRoles),
  })
  .meta({ id: 'Organization', description: 'The settings of the organization.' });
