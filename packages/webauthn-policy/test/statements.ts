import { generateKeyPairSync, sign } from 'node:crypto';
import { issueAttestationLeaf, issueAuthority } from '@svc/stand-ins/attestation-authority';
import type { CertificateRequest, GeneratedCertificate, Name } from '@svc/stand-ins/certificates';
import {
  trustAnchorFromPem,
  verifyAttestation,
  type AttestationFormat,
  type AttestedCredential,
  type TrustAnchor,
} from '@svc/webauthn-policy';

/**
 * The time at which the tests verify certificates. The certificates are valid from a day before it.
 */
export const NOW = new Date('2026-01-15T12:00:00Z');

/** The model that the attestation certificates name, as bytes and as a UUID. */
export const AAGUID = Buffer.from('c0ffee005f704a7e8e1d50f7a4e0ce01', 'hex');
export const MODEL = 'c0ffee00-5f70-4a7e-8e1d-50f7a4e0ce01';

export const ROOT = issueAuthority('Test Root', NOW);
export const ANCHOR = trustAnchorFromPem(ROOT.pem);

/** A subject as the format `packed` demands it. */
export const SUBJECT: Name = [
  ['C', 'SE'],
  ['O', 'Software Key'],
  ['OU', 'Authenticator Attestation'],
  ['CN', 'Software Key EE'],
];

/** Issues an attestation certificate, by the root if no other issuer is given. */
export function leafOf(issuer = ROOT, overrides: Partial<CertificateRequest> = {}) {
  return issueAttestationLeaf(AAGUID, NOW, issuer, overrides);
}

/** Issues the certificate of an authority below another authority. */
export function authorityOf(
  commonName: string,
  issuer = ROOT,
  overrides: Partial<CertificateRequest> = {},
) {
  return issueAuthority(commonName, NOW, issuer, overrides);
}

/** The parts of a statement that a test changes. */
interface Statement {
  readonly format?: AttestationFormat;
  /** The certificate whose key signs, and which is the first of x5c. */
  readonly leaf?: GeneratedCertificate;
  /** The certificates after the leaf. */
  readonly issuers?: readonly GeneratedCertificate[];
  readonly anchors?: readonly TrustAnchor[];
  readonly now?: Date;
  readonly credential?: Partial<AttestedCredential>;
}

const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
  format: 'jwk',
});

const CREDENTIAL: AttestedCredential = {
  authenticatorData: Buffer.alloc(60, 1),
  clientDataHash: Buffer.alloc(32, 2),
  rpIdHash: Buffer.alloc(32, 3),
  aaguid: AAGUID,
  credentialId: Buffer.alloc(16, 4),
  publicKey: { x: Buffer.from(x, 'base64url'), y: Buffer.from(y, 'base64url') },
};

/** Signs a statement with the key of its leaf, and returns what the policy decides about it. */
export function decide({
  format = 'packed',
  leaf = leafOf(),
  issuers = [],
  anchors = [ANCHOR],
  now = NOW,
  credential: changed = {},
}: Statement): string | null {
  const credential = { ...CREDENTIAL, ...changed };
  const { authenticatorData, clientDataHash, rpIdHash, credentialId, publicKey } = credential;
  const signed =
    format === 'packed'
      ? [authenticatorData, clientDataHash]
      : [
          Buffer.of(0),
          rpIdHash,
          clientDataHash,
          credentialId,
          Buffer.of(4),
          publicKey?.x ?? Buffer.alloc(0),
          publicKey?.y ?? Buffer.alloc(0),
        ];
  const signature = sign('sha256', Buffer.concat(signed), leaf.privateKey);
  const x5c = [leaf, ...issuers].map(({ der }) => der);
  return verifyAttestation({ format, signature, x5c }, credential, { anchors, now });
}
