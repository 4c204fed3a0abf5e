/** The ways in which users become members of an organization: by signing in, or by SCIM only. */
export const MEMBERSHIPS = ['open', 'scim_only'] as const;

/** One of the ways. In both, a user that SCIM removed cannot join again by signing in. */
export type Membership = (typeof MEMBERSHIPS)[number];

/** The message for a user that SCIM did not create, where only SCIM creates members. */
export const MEMBERS_BY_SCIM_ONLY =
  'Your organization provisions its users itself: ask its administrator.';

/** The message for a user that SCIM removed and did not create again. */
export const REMOVED_BY_SCIM =
  'Your organization has removed this account: ask its administrator to provision it again.';

/** The message for a user of a domain that an organization gave up, or whose DNS record it lost. */
export const DOMAIN_NEEDS_PROOF =
  'The domain of your e-mail belongs to no organization at present: ask your administrator to verify it.';

/** The message for a sign-in through a provider, or a tenant of a provider, that the organization does not use. */
export const OTHER_PROVIDER =
  'Your organization does not accept sign-ins through this identity provider.';

/** The message for the first user of a subdomain of a proven domain, who comes through a provider that its organization does not use. */
export const SUBDOMAIN_OF_PROVEN =
  'Another organization has proven the domain above that of your e-mail. Sign in through its identity provider, or ask its administrator.';
