import { hash } from 'node:crypto';
import { trustAnchorFromPem, type TrustAnchor } from '@svc/webauthn-policy';
import { YUBICO_ROOTS } from './pinned-roots.js';
import { VENDOR_INTERMEDIATES } from './vendor-intermediates.js';

/**
 * The injection token of the list of `TrustAnchor`s. Production provides {@link PINNED_ROOTS}, and
 * no setting can add to them. The demo and the tests add a root for the software keys of their own
 * run.
 */
export const TRUST_ANCHORS = Symbol('TrustAnchors');

/**
 * The vendor's root certificates. Each is checked against its fingerprint when this module is
 * loaded, so that a damaged table stops the start.
 */
export const PINNED_ROOTS: readonly TrustAnchor[] = YUBICO_ROOTS.map((root) => {
  // Only the root that also signs other authorities has intermediate certificates; the older roots
  // sign the certificates of security keys directly.
  const intermediates = root.fidoCaRequired ? VENDOR_INTERMEDIATES : [];
  const anchor = trustAnchorFromPem(root.pem, { ...root, intermediates });
  if (hash('sha256', anchor.certificate.x509.raw) !== root.sha256) {
    throw new Error(`the pinned root "${root.name}" is not the one whose fingerprint is pinned`);
  }
  return anchor;
});
