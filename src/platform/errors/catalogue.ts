/** The HTTP status of an error code, and its words in each format of an error response. */
interface Row {
  readonly status: number;
  /** The short title of the error on its page, and in its problem document (RFC 9457 §3.1). */
  readonly title: string;
  /**
   * The value of the parameter `error` in responses of the OAuth endpoints (RFC 6749 §4.1.2.1,
   * §5.2; RFC 6750 §3.1).
   */
  readonly oauth: string;
  /** The `scimType` of the error, if RFC 7644 §3.12 defines one. */
  readonly scimType?: string;
}

/**
 * Every error of the service, one row for each code. The union of codes is closed, so that a
 * renderer can switch over it exhaustively.
 */
export const CATALOGUE = {
  // Errors of the request itself, such as its body or its headers.
  malformed_body: {
    status: 400,
    title: 'Malformed body',
    oauth: 'invalid_request',
    scimType: 'invalidSyntax',
  },
  invalid_request: {
    status: 400,
    title: 'Invalid request',
    oauth: 'invalid_request',
    scimType: 'invalidSyntax',
  },
  not_found: { status: 404, title: 'Not found', oauth: 'invalid_request' },
  method_not_allowed: { status: 405, title: 'Method not allowed', oauth: 'invalid_request' },
  body_too_large: { status: 413, title: 'Body too large', oauth: 'invalid_request' },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    oauth: 'invalid_request',
  },
  expectation_failed: { status: 417, title: 'Expectation failed', oauth: 'invalid_request' },
  misdirected_request: { status: 421, title: 'Misdirected request', oauth: 'invalid_request' },
  rate_limited: { status: 429, title: 'Too many requests', oauth: 'temporarily_unavailable' },
  headers_too_large: { status: 431, title: 'Headers too large', oauth: 'invalid_request' },
  timed_out: { status: 408, title: 'Request timed out', oauth: 'invalid_request' },
  invalid_origin: { status: 403, title: 'Invalid origin', oauth: 'invalid_request' },
  stale_page: { status: 409, title: 'Out-of-date page', oauth: 'invalid_request' },

  // Errors about the caller: its authentication and its rights.
  unauthenticated: { status: 401, title: 'Not signed in', oauth: 'invalid_token' },
  insufficient_user_authentication: {
    status: 401,
    title: 'Touch your key again',
    oauth: 'insufficient_user_authentication',
  },
  invalid_dpop_proof: { status: 401, title: 'Invalid DPoP proof', oauth: 'invalid_dpop_proof' },
  insufficient_scope: { status: 403, title: 'Insufficient scope', oauth: 'insufficient_scope' },
  admin_required: { status: 403, title: 'Admin required', oauth: 'access_denied' },
  hardware_required: { status: 403, title: 'Hardware key required', oauth: 'access_denied' },
  not_assigned: { status: 403, title: 'Not assigned', oauth: 'access_denied' },
  browser_required: { status: 403, title: 'Log in in a browser', oauth: 'access_denied' },
  account_inactive: { status: 403, title: 'Account inactive', oauth: 'access_denied' },

  invalid_client: { status: 400, title: 'Unknown client', oauth: 'invalid_client' },
  unauthorized_client: {
    status: 400,
    title: 'Client not authorized',
    oauth: 'unauthorized_client',
  },

  // Sign-in at an identity provider.
  unknown_provider: { status: 404, title: 'Unknown identity provider', oauth: 'invalid_request' },
  sign_in_failed: { status: 400, title: 'Sign-in failed', oauth: 'invalid_request' },
  sign_in_refused: { status: 403, title: 'Sign-in refused', oauth: 'access_denied' },
  sign_in_required: { status: 403, title: 'Sign in first', oauth: 'interaction_required' },
  upstream_unavailable: {
    status: 502,
    title: 'Identity provider unavailable',
    oauth: 'temporarily_unavailable',
  },

  // Enrollment of a key and login with it.
  invalid_state: { status: 400, title: 'Invalid state', oauth: 'invalid_grant' },
  attestation_rejected: { status: 400, title: 'Attestation rejected', oauth: 'invalid_request' },
  hardware_ssh_key_required: {
    status: 403,
    title: 'Hardware SSH key required',
    oauth: 'access_denied',
  },
  device_passkey: { status: 400, title: 'Not a security key', oauth: 'invalid_request' },
  attestation_missing: { status: 400, title: 'Make and model missing', oauth: 'invalid_request' },
  model_not_allowed: { status: 400, title: 'Model not allowed', oauth: 'invalid_request' },
  user_verification_missing: { status: 400, title: 'No PIN', oauth: 'invalid_request' },
  assertion_rejected: { status: 400, title: 'Assertion rejected', oauth: 'invalid_grant' },
  already_enrolled: { status: 403, title: 'A key is already enrolled', oauth: 'access_denied' },
  enrollment_refused: { status: 403, title: 'Enrollment refused', oauth: 'access_denied' },
  enrollment_pass_required: {
    status: 403,
    title: 'Re-enrollment pass required',
    oauth: 'access_denied',
  },
  enrollment_pass_invalid: {
    status: 403,
    title: 'Invalid re-enrollment pass',
    oauth: 'access_denied',
  },
  credential_exists: { status: 409, title: 'Key already registered', oauth: 'invalid_request' },
  last_key: { status: 409, title: 'Your only key', oauth: 'invalid_request' },

  // Changes of members by admins.
  own_account: { status: 409, title: 'Your own account', oauth: 'invalid_request' },
  last_admin: { status: 409, title: 'Last admin', oauth: 'invalid_request' },
  nothing_to_part: { status: 409, title: 'Nothing to part', oauth: 'invalid_request' },
  nothing_withheld: { status: 409, title: 'No address withheld', oauth: 'invalid_request' },

  // The domains of an organization.
  primary_domain: { status: 409, title: 'Primary domain', oauth: 'invalid_request' },
  domain_exists: { status: 409, title: 'Domain already added', oauth: 'invalid_request' },
  domain_taken: { status: 409, title: 'Domain taken', oauth: 'invalid_request' },
  domain_not_proven: { status: 409, title: 'Domain not proven', oauth: 'invalid_request' },
  dns_unavailable: { status: 503, title: 'DNS unavailable', oauth: 'temporarily_unavailable' },

  // Identity providers of an organization.
  already_allowed: { status: 409, title: 'Already allowed', oauth: 'invalid_request' },
  own_provider: { status: 409, title: 'Your own provider', oauth: 'invalid_request' },
  last_provider: { status: 409, title: 'Last provider', oauth: 'invalid_request' },

  // Registration of applications, and SCIM tokens.
  limit_reached: { status: 409, title: 'Limit reached', oauth: 'invalid_request' },

  // Provisioning (RFC 7644 §3.12).
  invalid_filter: {
    status: 400,
    title: 'Invalid filter',
    oauth: 'invalid_request',
    scimType: 'invalidFilter',
  },
  invalid_path: {
    status: 400,
    title: 'Invalid path',
    oauth: 'invalid_request',
    scimType: 'invalidPath',
  },
  no_target: {
    status: 400,
    title: 'Nothing at that path',
    oauth: 'invalid_request',
    scimType: 'noTarget',
  },
  mutability: {
    status: 400,
    title: 'Attribute is read-only',
    oauth: 'invalid_request',
    scimType: 'mutability',
  },
  invalid_value: {
    status: 400,
    title: 'Invalid value',
    oauth: 'invalid_request',
    scimType: 'invalidValue',
  },
  uniqueness: {
    status: 409,
    title: 'Already taken',
    oauth: 'invalid_request',
    scimType: 'uniqueness',
  },
  invalid_cursor: {
    status: 400,
    title: 'Invalid cursor',
    oauth: 'invalid_request',
    scimType: 'invalidCursor',
  },
  invalid_count: {
    status: 400,
    title: 'Invalid count',
    oauth: 'invalid_request',
    scimType: 'invalidCount',
  },
  precondition_failed: {
    status: 412,
    title: 'Precondition failed',
    oauth: 'invalid_request',
  },
  precondition_required: {
    status: 428,
    title: 'Precondition required',
    oauth: 'invalid_request',
  },
  not_filterable: { status: 403, title: 'Not filterable', oauth: 'invalid_request' },
  not_implemented: { status: 501, title: 'Not implemented', oauth: 'invalid_request' },
  feed_restarted: { status: 409, title: 'Feed restarted', oauth: 'invalid_request' },
  too_many: { status: 400, title: 'Too many', oauth: 'invalid_request', scimType: 'tooMany' },

  // Issuance of credentials.
  invalid_public_key: { status: 400, title: 'Invalid public key', oauth: 'invalid_request' },
  too_many_principals: { status: 400, title: 'Too many principals', oauth: 'invalid_request' },
  principal_not_allowed: { status: 403, title: 'Principal not allowed', oauth: 'access_denied' },
  issuance_refused: { status: 403, title: 'Issuance refused', oauth: 'access_denied' },

  // Issuers of organizations.
  label_reserved: { status: 409, title: 'Label reserved', oauth: 'invalid_request' },
  label_taken: { status: 409, title: 'Label taken', oauth: 'invalid_request' },
  issuer_exists: { status: 409, title: 'An issuer exists', oauth: 'invalid_request' },
  rotation_pending: { status: 409, title: 'A rotation is pending', oauth: 'invalid_request' },
  token_rotated: { status: 409, title: 'Token already rotated', oauth: 'invalid_request' },
  issuers_not_configured: {
    status: 503,
    title: 'Issuers are not configured',
    oauth: 'temporarily_unavailable',
  },

  // GitHub.
  permission_not_allowed: { status: 403, title: 'Permission not allowed', oauth: 'access_denied' },
  github_suspended: { status: 403, title: 'Installation suspended', oauth: 'access_denied' },
  installation_linked: { status: 409, title: 'Already linked', oauth: 'invalid_request' },
  invalid_signature: { status: 401, title: 'Invalid signature', oauth: 'invalid_request' },
  github_unavailable: {
    status: 502,
    title: 'GitHub unavailable',
    oauth: 'temporarily_unavailable',
  },
  github_not_configured: {
    status: 503,
    title: 'GitHub is not configured',
    oauth: 'temporarily_unavailable',
  },

  // Faults of the service.
  internal: { status: 500, title: 'Internal error', oauth: 'server_error' },
  kms_unavailable: {
    status: 503,
    title: 'Key service unavailable',
    oauth: 'temporarily_unavailable',
  },
  unavailable: { status: 503, title: 'Service unavailable', oauth: 'temporarily_unavailable' },
} as const satisfies Record<string, Row>;

/** The codes of all errors: the keys of the catalogue. */
export type ErrorCode = keyof typeof CATALOGUE;
