/**
 * Every error a client can meet, one row a code: the HTTP status and the short title of its problem document
 * (RFC 9457 §3.1). The union of codes is closed: whoever renders an error can switch over it exhaustively.
 */
export const CATALOGUE = {
  // What the request itself is.
  malformed_body: { status: 400, title: 'Malformed body' },
  invalid_request: { status: 400, title: 'Invalid request' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  body_too_large: { status: 413, title: 'Body too large' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type' },
  invalid_origin: { status: 403, title: 'Invalid origin' },

  // Who is asking.
  unauthenticated: { status: 401, title: 'Not signed in' },
  hardware_required: { status: 403, title: 'Hardware key required' },
  account_inactive: { status: 403, title: 'Account inactive' },

  // Signing in upstream.
  unknown_provider: { status: 404, title: 'Unknown identity provider' },
  sign_in_failed: { status: 400, title: 'Sign-in failed' },
  sign_in_refused: { status: 403, title: 'Sign-in refused' },
  upstream_unavailable: { status: 502, title: 'Identity provider unavailable' },

  // Enrolling a key and logging in with it.
  invalid_state: { status: 400, title: 'Invalid state' },
  attestation_rejected: { status: 400, title: 'Attestation rejected' },
  assertion_rejected: { status: 400, title: 'Assertion rejected' },
  already_enrolled: { status: 403, title: 'A key is already enrolled' },
  enrollment_refused: { status: 403, title: 'Enrollment refused' },
  credential_exists: { status: 409, title: 'Key already registered' },

  // What is issued.
  invalid_public_key: { status: 400, title: 'Invalid public key' },
  principal_not_allowed: { status: 403, title: 'Principal not allowed' },
  issuance_refused: { status: 403, title: 'Issuance refused' },

  // Our own trouble.
  internal: { status: 500, title: 'Internal error' },
  unavailable: { status: 503, title: 'Service unavailable' },
} as const satisfies Record<string, { status: number; title: string }>;

/** The closed union of error codes. */
export type ErrorCode = keyof typeof CATALOGUE;
