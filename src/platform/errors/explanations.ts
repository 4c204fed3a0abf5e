import type { ErrorCode } from './catalogue.js';

/** The text of the page of an error code: the cause, and the remedy. */
interface Explanation {
  readonly cause: string;
  readonly remedy: string;
}

const TRY_LATER = 'Try again later. If it stays, tell the operator of this service the reference.';
const ASK_ADMIN = 'Ask an admin of your organization.';

/** Explains every error of the catalogue to people, for its page at `/errors/{code}`. */
export const EXPLANATIONS: Readonly<Record<ErrorCode, Explanation>> = {
  malformed_body: {
    cause: 'The body is no valid JSON or form, is nested too deeply, or ends too early.',
    remedy: 'Send a complete body in UTF-8 of the media type that the route reads.',
  },
  invalid_request: {
    cause:
      'A parameter, a header or a member of the body is missing, unknown or has a wrong value.',
    remedy:
      'The detail names the value. Correct it by the API documentation and send the request again.',
  },
  not_found: {
    cause: 'Nothing is at this URL, or it belongs to another user or organization.',
    remedy: 'Check the URL and the id. A list shows which ids you may use.',
  },
  method_not_allowed: {
    cause: 'The URL exists, and does not know this method.',
    remedy: 'Use a method that the header Allow names.',
  },
  body_too_large: {
    cause: 'The body is larger than this route reads.',
    remedy: 'Send less at once. The API documentation states the largest size of each route.',
  },
  unsupported_media_type: {
    cause: 'The Content-Type is not the one that the route reads, or the body is compressed.',
    remedy: 'Send the media type that the detail names, as plain UTF-8.',
  },
  expectation_failed: {
    cause: 'The header Expect asks for something else than 100-continue.',
    remedy: 'Leave the header out.',
  },
  misdirected_request: {
    cause: 'The request names a host that this service does not serve.',
    remedy: 'Use the URL that the detail names. An operator checks the proxy and SVC_BASE_URL.',
  },
  rate_limited: {
    cause: 'Too many requests came from your network address.',
    remedy: 'Wait the seconds that the header Retry-After states, and send the request again.',
  },
  headers_too_large: {
    cause: 'The headers of the request are larger than the service reads.',
    remedy: 'Send fewer or shorter headers. In a browser, remove the cookies of this site.',
  },
  timed_out: {
    cause: 'The request did not arrive, or could not be answered, in time.',
    remedy: 'Send the request again.',
  },
  invalid_origin: {
    cause: 'A browser sent this change from a page that is not part of this service.',
    remedy: 'Use the pages of this service. A program sends a token in the Authorization header.',
  },
  stale_page: {
    cause: 'The page was made for an earlier session of this browser.',
    remedy: 'Reload the page and try again.',
  },
  unauthenticated: {
    cause: 'The request carries no valid session or token, or the token has expired.',
    remedy: 'Sign in again, or get a new token.',
  },
  insufficient_user_authentication: {
    cause: 'The last touch of your security key is too long ago for this change.',
    remedy: 'Touch your security key again, then repeat the change.',
  },
  invalid_dpop_proof: {
    cause: 'The DPoP proof is missing, was used before, or does not fit the request or the token.',
    remedy: 'Sign a new proof for this method, URL and token. Check the clock of the client.',
  },
  insufficient_scope: {
    cause: 'The access token does not have the scope that this route needs.',
    remedy: 'Ask for a token with the scope that the header WWW-Authenticate names.',
  },
  admin_required: {
    cause: 'Only admins of an organization may do this.',
    remedy: ASK_ADMIN,
  },
  hardware_required: {
    cause: 'The session was not opened with a security key.',
    remedy: 'Log in with your security key.',
  },
  not_assigned: {
    cause: 'Your organization gives this application, role, host or repository to assigned people.',
    remedy: ASK_ADMIN,
  },
  browser_required: {
    cause: 'This needs a touch of your security key, which a login by a device code cannot give.',
    remedy: 'Log in on a machine with a browser, by `svc login`.',
  },
  account_inactive: {
    cause: 'The account is deactivated.',
    remedy: ASK_ADMIN,
  },
  invalid_client: {
    cause: 'The client is unknown, or could not prove itself.',
    remedy: 'Check the client id and the secret, key or certificate of the application.',
  },
  unauthorized_client: {
    cause: 'The client is not registered for this grant.',
    remedy: 'Register the grant type for the application, or use another grant.',
  },
  unknown_provider: {
    cause: 'No identity provider of this name is configured.',
    remedy: 'Choose a provider on the login page.',
  },
  sign_in_failed: {
    cause: 'The response of the identity provider is missing, late or not valid.',
    remedy: 'Start the sign-in again on the login page.',
  },
  sign_in_refused: {
    cause: 'The identity provider knows you, but this account may not sign in through it.',
    remedy:
      'Follow the detail of the error: sign in in another way, or ask an admin of your organization.',
  },
  sign_in_required: {
    cause:
      'The database of the service lost changes, and everything on record was ended. The first login after that needs the identity provider and the key, because the account of a user who left may be back.',
    remedy:
      'Sign in at your identity provider, then use your key. After that the key alone is enough again.',
  },
  upstream_unavailable: {
    cause: 'The identity provider does not respond.',
    remedy: TRY_LATER,
  },
  invalid_state: {
    cause: 'The step was begun too long ago, in another browser, or is already done.',
    remedy: 'Start again from the first step.',
  },
  attestation_rejected: {
    cause: 'The key does not prove that it is a genuine security key of an accepted maker.',
    remedy: 'Use a hardware security key of an accepted model.',
  },
  hardware_ssh_key_required: {
    cause: 'This service certifies only SSH keys that live in a security key.',
    remedy:
      'Make the SSH key on your security key with ssh-keygen -t ed25519-sk, with attestation.',
  },
  device_passkey: {
    cause: 'The credential is a passkey of a device or of a password manager.',
    remedy: 'Choose the security key in the dialog of the browser.',
  },
  attestation_missing: {
    cause: 'The browser withheld the make and model of the key.',
    remedy: 'Allow the browser to show the make and model, and try again.',
  },
  model_not_allowed: {
    cause: 'The key is genuine, and its model is not accepted here.',
    remedy: 'Use a model from the list on the enrollment page.',
  },
  user_verification_missing: {
    cause: 'The key has no PIN, or did not ask for it.',
    remedy: 'Set a PIN on the key, and try again.',
  },
  assertion_rejected: {
    cause: 'The signature of the key does not fit the challenge, or the key is not registered.',
    remedy: 'Try again with a key that you registered here.',
  },
  already_enrolled: {
    cause: 'The account has a security key already.',
    remedy: 'Log in with that key, then add another one on the page of your keys.',
  },
  enrollment_refused: {
    cause: 'The account may not register a key now.',
    remedy: ASK_ADMIN,
  },
  enrollment_pass_required: {
    cause: 'An admin gave you a pass for your next security key, and no key is added without it.',
    remedy: 'Open the enrollment page and type the pass that the admin gave you.',
  },
  enrollment_pass_invalid: {
    cause: 'The pass is wrong, was used, has expired, or belongs to another member.',
    remedy: 'Ask an admin of your organization for a new pass.',
  },
  credential_exists: {
    cause: 'This key is registered already.',
    remedy: 'Use the key to log in, or register another one.',
  },
  last_key: {
    cause: 'It is the only key of the account. Without it you could not log in.',
    remedy: 'Register a second key first.',
  },
  own_account: {
    cause: 'Admins cannot do this to their own account.',
    remedy: 'Ask another admin.',
  },
  last_admin: {
    cause: 'The organization would have no admin left.',
    remedy: 'Make another member an admin first.',
  },
  nothing_to_part: {
    cause: 'The member is no twin of a record, was not taken over by one, and is linked to none.',
    remedy: 'Load the page of the member again: another admin may have parted the accounts.',
  },
  nothing_withheld: {
    cause: 'No other account signs in with the userName of this member.',
    remedy: 'Load the page of the member again: another admin may have given the address.',
  },
  primary_domain: {
    cause: 'The primary domain of an organization needs no proof and cannot be removed.',
    remedy: 'Choose another domain.',
  },
  domain_exists: {
    cause: 'The organization has this domain already.',
    remedy: 'Verify the domain that is in the list.',
  },
  domain_taken: {
    cause: 'Another organization owns this domain.',
    remedy: 'Check the name. If the domain is yours, contact the operator of this service.',
  },
  domain_not_proven: {
    cause: 'The DNS does not show the record that proves the domain.',
    remedy: 'Publish the TXT record, wait until the DNS shows it, and verify again.',
  },
  dns_unavailable: {
    cause: 'The DNS did not answer.',
    remedy: 'Try again later.',
  },
  already_allowed: {
    cause: 'The organization accepts this identity provider already.',
    remedy: 'Nothing is left to do.',
  },
  own_provider: {
    cause: 'You are signed in through this identity provider.',
    remedy: 'Ask an admin who signs in through another provider.',
  },
  last_provider: {
    cause: 'It is the only identity provider of the organization.',
    remedy: 'Allow another identity provider first.',
  },
  limit_reached: {
    cause: 'The largest number of these is reached.',
    remedy: 'Remove one that is no longer needed.',
  },
  invalid_filter: {
    cause: 'The SCIM filter cannot be read, or compares an attribute that does not exist.',
    remedy: 'Write the filter by RFC 7644 section 3.4.2.2.',
  },
  invalid_path: {
    cause: 'The path names no attribute of the resource.',
    remedy: 'Use a path of the schemas that the SCIM service lists.',
  },
  no_target: {
    cause: 'The path of the operation selects no value.',
    remedy: 'Read the resource, and change a value that it has.',
  },
  mutability: {
    cause: 'The attribute cannot be changed by clients.',
    remedy: 'Leave the attribute out.',
  },
  invalid_value: {
    cause: 'A value has a wrong type or form.',
    remedy: 'The detail names the attribute or parameter. Correct its value.',
  },
  uniqueness: {
    cause: 'Another resource has this name.',
    remedy: 'Choose another name, or change the resource that has it.',
  },
  invalid_cursor: {
    cause: 'The cursor is not one that this search gave, or has expired.',
    remedy: 'Start the search again from its first page.',
  },
  invalid_count: {
    cause: 'The `count` of a search by cursor is no whole number.',
    remedy: 'Send a number from 1 to the `maxPageSize` of ServiceProviderConfig, or no `count`.',
  },
  precondition_failed: {
    cause: 'The resource has changed since you read it.',
    remedy: 'Read it again, and repeat the change on the new version.',
  },
  precondition_required: {
    cause: 'The change needs the header `If-Match` with the entity tag of what you read.',
    remedy: 'Read the resource, and send its `ETag` as `If-Match`.',
  },
  not_filterable: {
    cause: 'Discovery documents of SCIM cannot be filtered.',
    remedy: 'Send the request without a filter.',
  },
  not_implemented: {
    cause: 'The SCIM service does not have this function.',
    remedy: 'The SCIM document ServiceProviderConfig lists what it has.',
  },
  feed_restarted: {
    cause:
      'The database never had the place of the cursor, because events were lost or a backup was restored.',
    remedy:
      'Go on with the `cursor` of the answer, and expect that events which were read before are missing.',
  },
  too_many: {
    cause: 'The search or change is too expensive to run.',
    remedy: 'Make the filter simpler, or change fewer values at once.',
  },
  invalid_public_key: {
    cause: 'The text is no SSH public key, or its type or length is not accepted.',
    remedy: 'Send one line of a .pub file: Ed25519, ECDSA, a security key, or RSA from 3072 bits.',
  },
  principal_not_allowed: {
    cause: 'The certificate would name a user that is not yours.',
    remedy: 'Leave the principals out, or ask for your own.',
  },
  too_many_principals: {
    cause:
      'You reach so many groups of hosts that one certificate cannot name them all: OpenSSH reads at most 256 principals.',
    remedy: 'Name the host that you log in to, in `host`. `svc ssh` does so by itself.',
  },
  issuance_refused: {
    cause:
      'Nothing may be issued: the account has no verified address or organization, or the issuer of its organization has no signing key.',
    remedy: ASK_ADMIN,
  },
  label_reserved: {
    cause: 'The label is reserved for the service or another organization.',
    remedy: 'Choose another label.',
  },
  label_taken: {
    cause: 'Another organization has this label.',
    remedy: 'Choose another label.',
  },
  issuer_exists: {
    cause: 'The organization has an issuer already.',
    remedy: 'Release its label first.',
  },
  rotation_pending: {
    cause: 'A new key or token replaces this one already, and this one is still in use.',
    remedy:
      'End the old token first. A key of an issuer: wait until the new one signs, or rotate in an emergency.',
  },
  token_rotated: {
    cause: 'The program named a SCIM token that was rotated before.',
    remedy: 'Use the id in the detail. If the secret of that token was lost, rotate it again.',
  },
  issuers_not_configured: {
    cause: 'The operator has not configured the key that protects the keys of issuers.',
    remedy: 'Ask the operator to set SVC_DOCUMENT_KEY_KMS_KEY_ID.',
  },
  permission_not_allowed: {
    cause: 'The GitHub token would have more permissions than this service gives.',
    remedy: 'Ask for contents and metadata at most.',
  },
  github_suspended: {
    cause: 'The installation of the GitHub App is suspended.',
    remedy: 'An owner of the GitHub organization resumes it in its settings.',
  },
  installation_linked: {
    cause: 'The GitHub installation is linked to another organization.',
    remedy: 'An admin of that organization removes the link first.',
  },
  invalid_signature: {
    cause: 'The signature of the webhook does not fit its body.',
    remedy: 'Check that GitHub and SVC_GITHUB_WEBHOOK_SECRET have the same secret.',
  },
  github_unavailable: {
    cause: 'GitHub does not respond, or refused the request of the App.',
    remedy: 'Try again later. An operator checks the status of GitHub and the App.',
  },
  github_not_configured: {
    cause: 'The operator has not configured a GitHub App.',
    remedy: 'Ask the operator to set the variables SVC_GITHUB_APP_*.',
  },
  internal: {
    cause: 'The service met a fault that it did not expect. Nothing was half done.',
    remedy: TRY_LATER,
  },
  kms_unavailable: {
    cause: 'The key service that signs does not respond.',
    remedy: TRY_LATER,
  },
  unavailable: {
    cause: 'The service cannot reach its database, or many requests changed the same data.',
    remedy: 'Try again after the seconds that the header Retry-After states.',
  },
};
