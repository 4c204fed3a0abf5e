import { isDeepStrictEqual } from 'node:util';
import type { Registration } from './registration.js';

/**
 * The settings that decide how an application authenticates and which tokens it gets. If the owner
 * changes one of them, the application loses its approval, which an admin then has to give again.
 */
const PROOFS = [
  'auth_method',
  'grant_types',
  'jwks',
  'jwks_uri',
  'profile',
  'require_pkce',
  'require_signed_request_object',
  'sender_constraint',
  'tls_client_auth_subject_dn',
] as const satisfies readonly (keyof Registration)[];

/** A change of the registration of an approved application. */
export interface RegistrationChange {
  readonly before: Registration;
  readonly after: Registration;
  /** The redirect URIs that the approval covered before the change. */
  readonly approved: readonly string[];
  readonly isByAdmin: boolean;
}

/**
 * Returns the redirect URIs that an approval covers after a change of the registration. URIs that
 * an admin adds are approved. URIs that the owner adds need another approval. If the owner changes
 * how the application authenticates, the whole approval ends.
 *
 * @returns null if the approval ends
 */
export function approvedAfter(change: RegistrationChange): readonly string[] | null {
  const { before, after, approved, isByAdmin } = change;
  const isAsBefore = (name: (typeof PROOFS)[number]) =>
    isDeepStrictEqual(before[name], after[name]);
  if (!isByAdmin && !PROOFS.every(isAsBefore)) return null;
  return after.redirect_uris.filter(
    (uri) => approved.includes(uri) || (isByAdmin && !before.redirect_uris.includes(uri)),
  );
}
