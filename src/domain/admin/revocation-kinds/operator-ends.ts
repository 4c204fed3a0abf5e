/** The value of `revoked_by` in rows that the operator revoked. */
export const REVOKED_BY = 'operator';

/** The value of `revoke_reason` in rows that the operator revoked, for each act of the operator. */
export const REASONS = {
  'revoke-everything': 'everything revoked by the operator',
  'give-pass': 'the operator gave a re-enrollment pass',
} as const;
