import { z } from 'zod';

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
