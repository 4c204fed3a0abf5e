/** The ways in which users become members of an organization: by signing in, or by SCIM only. */
export const MEMBERSHIPS = ['open', 'scim_only'] as const;

/** One of the ways. In both, a user that SCIM removed cannot join again by signing in. */
export type Membership = (typeof MEMBERSHIPS)[number];

/** The message for a user that SCIM did not create, if only SCIM creates members. */
export const MEMBERS_BY_SCIM_ONLY =
  'Your organization provisions its users itself: ask its administrator.';

/** The message for a user that SCIM or an admin removed. */
export const REMOVED_BY_SCIM =
  'Your organization has removed this account: ask its administrator to provision or readmit it.';

/** The message for a deactivated user. */
export const DEACTIVATED = 'This account is deactivated.';

/** The message for an address that several records of the directory have. */
export const ADDRESS_OF_SEVERAL =
  'Several accounts of your organization have this e-mail address: ask your administrator which one is yours.';

/** The message for a record whose address another user has. */
export const NO_ADDRESS =
  'Another account of your organization signs in with the e-mail address of this one: ask your administrator.';

/** The message for a user of a domain that an organization gave up, or whose DNS record it lost. */
export const DOMAIN_NEEDS_PROOF =
  'The domain of your e-mail belongs to no organization at present: ask your administrator to verify it.';

/**
 * The message for a sign-in through a provider, or a tenant of a provider, that the organization
 * does not use.
 */
export const OTHER_PROVIDER =
  'Your organization does not accept sign-ins through this identity provider.';

/**
 * The message for the first user of a subdomain of a proven domain, who comes through a provider
 * that its organization does not use.
 */
export const SUBDOMAIN_OF_PROVEN =
  'Another organization has proven the domain above that of your e-mail. Sign in through its identity provider, or ask its administrator.';
