import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { parseCertificate, type ParsedCertificate } from '@svc/webauthn-policy';

const ROWS = z.array(
  z.object({
    subject: z.string(),
    issuer: z.string(),
    not_before: z.iso.datetime(),
    not_after: z.iso.datetime(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
    /** The URL at which the vendor publishes the certificate. */
    source: z.url(),
    der: z.base64(),
  }),
);

/**
 * The intermediate certificates of the vendor, each checked against its fingerprint when this
 * module is loaded. They complete the chain of an attestation that carries one certificate only.
 * They are no trust anchors: every path must still end in a pinned root.
 */
export const VENDOR_INTERMEDIATES: readonly ParsedCertificate[] = ROWS.parse(
  JSON.parse(readFileSync(table(), 'utf8')),
).map(({ subject, sha256, der }) => {
  const certificate = parseCertificate(Buffer.from(der, 'base64'));
  if (hash('sha256', certificate.x509.raw) !== sha256) {
    throw new Error(`the intermediate "${subject}" is not the one whose fingerprint is pinned`);
  }
  return certificate;
});

/**
 * Returns the URL of the JSON file with the intermediate certificates. Its relative path is the
 * same from the sources and from the build.
 */
function table(): URL {
  return new URL('../../../../../config/attestation-intermediates.json', import.meta.url);
}
