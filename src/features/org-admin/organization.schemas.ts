import { z } from 'zod';
import { MEMBERSHIPS } from '#domain/organizations/membership.js';
import { LINE_OF_TEXT } from './line-of-text.js';

/** `PATCH /api/v1/org`: each setting may be left out. */
export const CHANGE_ORGANIZATION = z.strictObject({
  name: LINE_OF_TEXT.exactOptional(),
  membership: z.enum(MEMBERSHIPS).exactOptional(),
});
/** The result of {@link CHANGE_ORGANIZATION}. */
export type OrganizationChange = z.output<typeof CHANGE_ORGANIZATION>;
