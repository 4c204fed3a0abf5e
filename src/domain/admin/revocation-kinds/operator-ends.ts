/** The author that rows name if the operator revoked them. */
export const REVOKED_BY = 'operator';

/** The reasons that rows name if the operator revoked them. */
export const REASONS = {
  'revoke-everything': 'everything revoked by the operator',
  'give-pass': 'the operator gave a re-enrollment pass',
} as const;
