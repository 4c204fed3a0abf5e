/** The revoker of what the operator ends, as the revocation records keep it. */
export const REVOKED_BY = 'operator';

/** The reasons of the operator's ends of access, for the revocation records. */
export const REASONS = {
  'revoke-everything': 'everything revoked by the operator',
  'give-pass': 'the operator gave a re-enrollment pass',
} as const;
