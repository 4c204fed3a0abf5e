import { z } from 'zod';
import { MEMBERSHIPS } from '#domain/organizations/membership.js';
import { isSingleLine } from '#platform/http/single-line.js';

/** `PATCH /api/v1/org`: each setting may be left out. */
export const CHANGE_ORGANIZATION = z.strictObject({
  name: z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .refine((text) => Array.from(text).length <= 256, 'must have at most 256 characters')
    .refine(isSingleLine, 'must be one line of text')
    .exactOptional(),
  membership: z.enum(MEMBERSHIPS).exactOptional(),
});
/** What {@link CHANGE_ORGANIZATION} makes of a body. */
export type OrganizationChange = z.output<typeof CHANGE_ORGANIZATION>;
