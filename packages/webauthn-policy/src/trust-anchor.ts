import { X509Certificate } from 'node:crypto';
import { parseCertificate, type ParsedCertificate } from './certificate.js';

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
