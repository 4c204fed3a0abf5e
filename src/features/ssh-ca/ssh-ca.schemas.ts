import { z } from 'zod';
import type { CertificateAuthority } from '#domain/ssh-certificates/authority/certificate-authority.service.js';

const END = 2n ** 64n; // serials of certificates are 64 bits (OpenSSH PROTOCOL.certkeys)

/** The path parameter of `GET /v1/credentials/ssh/krl/{serial}`. */
export const SERIAL = z.object({
  serial: z
    .string()
    .regex(/^(0|[1-9]\d{0,19})$/, 'must be a decimal number')
    .transform(BigInt)
    .refine((serial) => serial < END, 'must be below 2^64'),
});
export type SerialParameter = z.output<typeof SERIAL>;

/** The list in JSON; the times are RFC 3339. */
export interface RevocationListJson {
  /** Decimal, ascending. */
  readonly revoked_serials: readonly string[];
  readonly total: number;
  readonly generated_at: string;
}

/** The revocation state of one serial. */
export interface RevocationJson {
  readonly serial: string;
  readonly revoked: boolean;
  readonly checked_at: string;
}

/** A public key of the authority. */
export interface AuthorityKeyJson {
  /** The type and the key, as in a `.pub` file. */
  readonly public_key: string;
  readonly comment: string;
  readonly fingerprint: string;
  /** False for a key that has signed or will sign. */
  readonly signs: boolean;
}

/** The answer of `GET /v1/credentials/ssh/ca` in JSON: the key that signs, and every published key. */
export interface AuthorityJson {
  readonly public_key: string;
  readonly comment: string;
  readonly keys: readonly AuthorityKeyJson[];
}

/** Renders the public keys of the authority. */
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
