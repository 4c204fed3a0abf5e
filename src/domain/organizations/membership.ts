/** The ways in which people become members: by signing in, or by SCIM alone. */
export const MEMBERSHIPS = ['open', 'scim_only'] as const;

/** How people become members of an organization. In both modes a person that SCIM removed stays out. */
export type Membership = (typeof MEMBERSHIPS)[number];
