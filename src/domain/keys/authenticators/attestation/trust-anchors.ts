import { hash } from 'node:crypto';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { YUBICO_ROOTS } from './pinned-roots.js';
import { VENDOR_INTERMEDIATES } from './vendor-intermediates.js';

/**
 * The injection token of the list of `TrustAnchor`s. The composition root provides it:
 * production gives {@link PINNED_ROOTS} and nothing can add to them; the demo and the tests add a
 * root of their own run.
 */
export const TRUST_ANCHORS = Symbol('TrustAnchors');

/** The hardware vendor's roots, each checked against its fingerprint when this module is loaded. */
export const PINNED_ROOTS: readonly TrustAnchor[] = YUBICO_ROOTS.map((root) => {
  // Only the root that signs other authorities has intermediates; the older roots sign leaves
  // directly.
  const intermediates = root.fidoCaRequired ? VENDOR_INTERMEDIATES : [];
  const anchor = trustAnchorFromPem(root.pem, { ...root, intermediates });
  if (hash('sha256', anchor.certificate.x509.raw) !== root.sha256) {
    throw new Error(`the pinned root "${root.name}" is not the one whose fingerprint is pinned`);
  }
  return anchor;
});
