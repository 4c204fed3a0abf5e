import { NIL } from 'uuid';
import { z } from 'zod';
import type { Member } from '#domain/directory/users.repository.js';

/** The number of members on a page. */
const PAGE_SIZE = { usual: 100, most: 200 } as const;

/** The query of `GET /api/v1/org/members`. */
export const MEMBER_PAGE = z.object({
  /** The `next` of the previous page. */
  after: z.guid('must be the next of a page before').default(NIL),
  limit: z
    .string()
    .regex(/^\d{1,3}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(1).max(PAGE_SIZE.most))
    .default(PAGE_SIZE.usual),
});
/** The result of {@link MEMBER_PAGE}. */
export type MemberPageQuery = z.output<typeof MEMBER_PAGE>;

/** An id that is not a UUID is the id of no member: 404, not 400. */
export const MEMBER_ID = z.object({ id: z.string() });

/** A member in the JSON of the API. */
export interface MemberJson {
  readonly id: string;
  readonly email: string | null;
  readonly name: string | null;
  readonly is_org_admin: boolean;
  readonly active: boolean;
  readonly scim_managed: boolean;
  /** The number of enrolled keys. */
  readonly keys: number;
  readonly created_at: string;
}

/** Renders a member as JSON. */
export function memberJson(member: Member): MemberJson {
  return {
    id: member.id,
    email: member.email,
    name: member.name,
    is_org_admin: member.isOrgAdmin,
    active: member.active,
    scim_managed: member.scimManaged,
    keys: member.keys,
    created_at: member.createdAt.toISOString(),
  };
}
