import {
  hashOpaqueToken,
  mintOpaqueToken,
  type OpaqueToken,
} from '#platform/crypto/opaque-token.js';

/** What a SCIM token begins with, so that a secret scanner knows one when it sees it. */
export const SCIM_TOKEN_PREFIX = 'svc_scim_';

/** Mints a SCIM token of 256 random bits. The hash is that of the whole token, its prefix included. */
export function mintScimToken(): OpaqueToken {
  const token = SCIM_TOKEN_PREFIX + mintOpaqueToken().token;
  return { token, hash: hashOpaqueToken(token) };
}
