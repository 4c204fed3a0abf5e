/** The author of the revocations by the operator, as the revoked rows name it. */
export const REVOKED_BY = 'operator';

/** The reasons for which the operator ends access, as the revoked rows name them. */
export const REASONS = {
  'revoke-everything': 'everything revoked by the operator',
  'give-pass': 'the operator gave a re-enrollment pass',
} as const;
