import { generateKeyPairSync } from 'node:crypto';
import { basicConstraints, issueCertificate } from '@svc/stand-ins/certificates';

/** A signing key of an identity provider and its self-signed certificate, both PEM. */
export interface SigningCertificate {
  readonly key: string;
  readonly cert: string;
  /** The certificate in the form that SAML metadata need: DER in base64. */
  readonly base64: string;
}

/** Makes an RSA key and a self-signed certificate that is valid for an hour. */
export function makeSigningCertificate(name: string): SigningCertificate {
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const { pem, der } = issueCertificate({
    subject: [['CN', name]],
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 3_600_000),
    extensions: [basicConstraints(false)],
    keys,
  });
  const key = keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { key, cert: pem, base64: der.toString('base64') };
}
