/**
 * The rules by which users become members of an organization: by signing in (`open`), or by SCIM
 * alone (`scim_only`).
 */
export const MEMBERSHIPS = ['open', 'scim_only'] as const;

/**
 * A rule by which users become members. Under both rules, a user that SCIM removed cannot join
 * again by signing in.
 */
export type Membership = (typeof MEMBERSHIPS)[number];

/** The message for a user that SCIM did not create, if only SCIM creates members. */
export const MEMBERS_BY_SCIM_ONLY =
  'Your organization provisions its users itself: ask its administrator.';

/** The message for a user that SCIM or an admin removed. */
export const REMOVED_BY_SCIM =
  'Your organization has removed this account: ask its administrator to provision or readmit it.';

/** The message for a deactivated user. */
export const DEACTIVATED = 'This account is deactivated.';

/**
 * The message for a user whose e-mail address is in several SCIM records, because it is not clear
 * which record belongs to the user.
 */
export const ADDRESS_OF_SEVERAL =
  'Several accounts of your organization have this e-mail address: ask your administrator which one is yours.';

/** The message for the user of a SCIM record with whose e-mail address another user signs in. */
export const NO_ADDRESS =
  'Another account of your organization signs in with the e-mail address of this one: ask your administrator.';

/**
 * The message for a user with an e-mail address in a domain that was proven once, and that no
 * organization owns now.
 */
export const DOMAIN_NEEDS_PROOF =
  'The domain of your e-mail belongs to no organization at present: ask your administrator to verify it.';

/**
 * The message for a sign-in through an identity provider, or a tenant of it, that the organization
 * does not accept.
 */
export const OTHER_PROVIDER =
  'Your organization does not accept sign-ins through this identity provider.';

/**
 * The message for the first user of a subdomain, if an organization has proven a domain above it.
 * That organization does not accept the identity provider of the user.
 */
export const SUBDOMAIN_OF_PROVEN =
  'Another organization has proven the domain above that of your e-mail. Sign in through its identity provider, or ask its administrator.';
