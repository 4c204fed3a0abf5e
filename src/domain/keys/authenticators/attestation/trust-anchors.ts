import { hash, X509Certificate } from 'node:crypto';
import { parseCertificate, type ParsedCertificate } from './certificate.js';
import { YUBICO_ROOTS } from './pinned-roots.js';
import { VENDOR_INTERMEDIATES } from './vendor-intermediates.js';

/** A root that attestation paths may end in, parsed once for the life of the process. */
export interface TrustAnchor {
  readonly certificate: ParsedCertificate;
  /** True when a path must contain a CA named "Yubico FIDO Attestation ...". */
  readonly fidoCaRequired: boolean;
  /**
   * Known authorities under the root. They complete the chain of an attestation that carries its
   * leaf alone.
   */
  readonly intermediates: readonly ParsedCertificate[];
}

/**
 * The injection token of the list of {@link TrustAnchor}s. The composition root provides it:
 * production gives {@link PINNED_ROOTS} and nothing can add to them; the demo and the tests add a
 * root of their own run.
 */
export const TRUST_ANCHORS = Symbol('TrustAnchors');

/**
 * Makes a trust anchor of a root's PEM.
 *
 * @throws Error for anything but one CA certificate that may sign certificates: a fault of the
 *   deployment, not of a client
 */
export function trustAnchorFromPem(
  pem: string,
  options: {
    readonly fidoCaRequired?: boolean;
    readonly intermediates?: readonly ParsedCertificate[];
  } = {},
): TrustAnchor {
  const certificate = parseCertificate(new X509Certificate(pem).raw);
  if (certificate.basicConstraints?.ca !== true || !certificate.signsCertificates) {
    throw new Error(
      `not a certificate authority: ${certificate.x509.subject.replaceAll('\n', ', ')}`,
    );
  }
  const { fidoCaRequired = false, intermediates = [] } = options;
  return { certificate, fidoCaRequired, intermediates };
}

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
