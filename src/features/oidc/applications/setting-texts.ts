/** The description of the name of an application, for `/openapi.json`. */
export const NAME = 'The name that people see.';

/** The description of the type of an application, for `/openapi.json`. */
export const TYPE =
  '`web` keeps a secret on a server, `spa` runs in a browser, `native` on a device, `service` acts for itself.';

/**
 * The descriptions of the settings of an OAuth client, in requests and in responses, for
 * `/openapi.json`.
 */
export const SETTINGS = {
  profile: '`fapi2` demands the FAPI 2.0 Security Profile.',
  grant_types: 'The grant types that the client may use; the usual one of its type unless set.',
  auth_method: 'The method by which the client authenticates (RFC 7591 §2).',
  redirect_uris: 'The URLs to which a sign-in may lead back.',
  post_logout_redirect_uris: 'The URLs to which a logout may lead.',
  initiate_login_uri: 'The URL at which a sign-in to the application starts.',
  request_uris: 'The URLs of request objects that the client keeps (RFC 9101).',
  backchannel_logout_uri: 'The URL of logout tokens.',
  backchannel_logout_session_required: 'True: each logout token names the session that ended.',
  backchannel_logout_at_session_end: 'True: also the end of a session by its own time is told.',
  scopes: 'The scopes that the client defines for its own resource servers.',
  jwks: 'The public keys of the client.',
  jwks_uri: 'The URL of the public keys of the client.',
  tls_client_auth_subject_dn: 'The subject of its certificate (RFC 8705 §2.1.2).',
  sender_constraint: 'The way in which its access tokens are bound to a key.',
  require_signed_request_object: 'True: each authorization request is signed (RFC 9101).',
  require_pkce: 'True: each authorization request has a `code_challenge` (RFC 7636).',
  id_token_lifetime_seconds: 'The seconds for which an ID token is valid.',
  userinfo_signed_response_alg: 'The algorithm that signs userinfo responses; null for plain JSON.',
  response_mode: '`jwt`: each authorization response is signed.',
} as const;
