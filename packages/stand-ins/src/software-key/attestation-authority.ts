import {
  aaguidExtension,
  basicConstraints,
  issueCertificate,
  keyUsage,
  type CertificateRequest,
  type GeneratedCertificate,
  type Name,
} from './certificates.js';

const DAY_MS = 86_400_000;

/**
 * Issues the certificate of an authority. The authority issues the certificates that attest
 * software keys.
 *
 * @param commonName the name of the authority, for the attribute CN of the subject
 * @param now the validity starts a day before this time, and lasts ten years
 * @param issuer the superior authority; a root has none
 * @param overrides fields that differ from the default
 */
export function issueAuthority(
  commonName: string,
  now: Date,
  issuer?: GeneratedCertificate,
  overrides: Partial<CertificateRequest> = {},
): GeneratedCertificate {
  const request = {
    subject: [['CN', commonName]] as Name,
    ...validity(now),
    extensions: [basicConstraints(true), keyUsage('sign-certificates')],
  };
  return issueCertificate({ ...request, ...overrides }, issuer);
}

/**
 * Issues the attestation certificate that all keys of one model share (WebAuthn §8.2.1).
 *
 * @param aaguid the 16 bytes that name the model
 * @param overrides fields that differ from the default
 */
export function issueAttestationLeaf(
  aaguid: Buffer,
  now: Date,
  issuer: GeneratedCertificate,
  overrides: Partial<CertificateRequest> = {},
): GeneratedCertificate {
  const request = {
    subject: [
      ['C', 'SE'],
      ['O', 'Software Key'],
      ['OU', 'Authenticator Attestation'],
      ['CN', 'Software Key EE'],
    ] as Name,
    ...validity(now),
    extensions: [basicConstraints(false), aaguidExtension(aaguid)],
  };
  return issueCertificate({ ...request, ...overrides }, issuer);
}

function validity(now: Date): Pick<CertificateRequest, 'notBefore' | 'notAfter'> {
  return {
    notBefore: new Date(now.getTime() - DAY_MS),
    notAfter: new Date(now.getTime() + 3650 * DAY_MS),
  };
}
