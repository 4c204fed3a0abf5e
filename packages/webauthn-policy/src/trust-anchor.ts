import { X509Certificate } from 'node:crypto';
import { mayBeRoot, parseCertificate, type ParsedCertificate } from './certificate.js';

/**
 * A trusted root (trust anchor), in which the chain of an attestation certificate may end. It is
 * parsed once for the life of the process.
 */
export interface TrustAnchor {
  readonly certificate: ParsedCertificate;
  /**
   * True if a chain to this root must contain an authority named "Yubico FIDO Attestation ...",
   * because the root also signs authorities for other purposes.
   */
  readonly fidoCaRequired: boolean;
  /**
   * Known intermediate certificates below the root. They complete the chain of an attestation that
   * contains only its leaf.
   */
  readonly intermediates: readonly ParsedCertificate[];
}

/**
 * Makes a trust anchor (a trusted root) from PEM.
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
  if (!mayBeRoot(certificate)) {
    throw new Error(
      `not a certificate authority: ${certificate.x509.subject.replaceAll('\n', ', ')}`,
    );
  }
  const { fidoCaRequired = false, intermediates = [] } = options;
  return { certificate, fidoCaRequired, intermediates };
}
