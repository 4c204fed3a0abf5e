import { z } from 'zod';
import type { CertificateAuthority } from '#domain/ssh/authority/certificate-authority.service.js';

const END = 2n ** 64n; // serials of certificates are 64 bits (OpenSSH PROTOCOL.certkeys)

/**
 * The path parameter of `GET /v1/credentials/ssh/krl/{serial}`: the serial number of a certificate.
 */
export const SERIAL = z.object({
  serial: z
    .string()
    .regex(/^(0|[1-9]\d{0,19})$/, 'must be a decimal number')
    .transform(BigInt)
    .refine((serial) => serial < END, 'must be below 2^64')
    .describe('The serial number of the certificate, in decimal.'),
});
export type SerialParameter = z.output<typeof SERIAL>;

/**
 * The path parameter of `GET /v1/credentials/ssh/allowed_signers/{organization}`. A text that is no
 * UUID gets 404, and not 400.
 */
export const SIGNING_ORGANIZATION = z.object({
  organization: z.string().describe('The id of the organization.'),
});
export type SigningOrganization = z.output<typeof SIGNING_ORGANIZATION>;

/** The revocation list in JSON. Times are in the format of RFC 3339. */
export const REVOCATION_LIST_JSON = z
  .object({
    revoked_serials: z.array(z.string()).readonly().meta({ description: 'Decimal, ascending.' }),
    revoked_ranges: z
      .array(
        z.object({
          first: z.string().describe('The first serial.'),
          last: z.string().describe('The last serial.'),
        }),
      )
      .readonly()
      .meta({
        description:
          'Serials that are revoked whether or not a certificate is on record, both ends included: after PostgreSQL may have lost commits.',
      }),
    total: z.int().meta({ description: 'The number of `revoked_serials`, without the ranges.' }),
    generated_at: z.iso.datetime().describe('The time of the list.'),
  })
  .meta({ id: 'RevocationList', description: 'The revoked SSH certificates.' });
/** The type of the revocation list in JSON, by which the compiler checks answers. */
export type RevocationListJson = z.output<typeof REVOCATION_LIST_JSON>;

/** The JSON that says if the certificate with a serial is revoked. */
export const REVOCATION_JSON = z
  .object({
    serial: z.string().describe('The serial number, in decimal.'),
    revoked: z.boolean().describe('True if the certificate is revoked.'),
    checked_at: z.iso.datetime().describe('The time of the check.'),
  })
  .meta({ id: 'Revocation', description: 'Whether a certificate is revoked.' });
/**
 * The type of the JSON that says if the certificate with a serial is revoked, by which the compiler
 * checks answers.
 */
export type RevocationJson = z.output<typeof REVOCATION_JSON>;

/** A public key of the SSH certificate authority in the JSON of the API. */
export const AUTHORITY_KEY_JSON = z
  .object({
    public_key: z.string().meta({ description: 'The type and the key, as in a `.pub` file.' }),
    comment: z.string().describe('The comment of the key.'),
    fingerprint: z.string().describe('The fingerprint, as `ssh-keygen -l` prints it.'),
    signs: z.boolean().meta({ description: 'False for a key that has signed or will sign.' }),
  })
  .meta({ id: 'SshAuthorityKey', description: 'A public key of the certificate authority.' });
/**
 * The type of a public key of the SSH certificate authority in the JSON of the API, by which the
 * compiler checks answers.
 */
export type AuthorityKeyJson = z.output<typeof AUTHORITY_KEY_JSON>;

/**
 * The answer of `GET /v1/credentials/ssh/ca` in JSON: the key that signs, and every published key.
 */
export const AUTHORITY_JSON = z
  .object({
    public_key: z.string().describe('The key that signs: its type and the key.'),
    comment: z.string().describe('The comment of the key.'),
    keys: z.array(AUTHORITY_KEY_JSON).readonly().describe('Every key to trust.'),
  })
  .meta({ id: 'SshAuthority', description: 'The public keys of the SSH certificate authority.' });
/**
 * The type of the answer of `GET /v1/credentials/ssh/ca` in JSON, by which the compiler checks
 * answers.
 */
export type AuthorityJson = z.output<typeof AUTHORITY_JSON>;

/**
 * Renders the public keys of the SSH certificate authority as JSON. `public_key` is the key that
 * signs.
 */
export function authorityJson(authority: CertificateAuthority): AuthorityJson {
  const { comment } = authority;
  const lines = authority.publicKeyLines();
  const keys = authority.keys.map(({ fingerprint }, index) => ({
    public_key: (lines[index] ?? '').split(' ', 2).join(' '),
    comment,
    fingerprint,
    signs: fingerprint === authority.fingerprint,
  }));
  return { public_key: keys[0]?.public_key ?? '', comment, keys };
}
