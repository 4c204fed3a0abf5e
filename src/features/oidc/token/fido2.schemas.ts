import { z } from 'zod';

/** `POST /oauth/fido2/challenge`, a form. */
export const CHALLENGE = z.object({
  client_id: z.string().max(256),
  /** The thumbprint of the DPoP key that the token will be bound to (as in RFC 9449 §10). */
  dpop_jkt: z
    .string()
    .regex(/^[\w-]{43}$/, 'must be the SHA-256 thumbprint of a key')
    .optional(),
});
export type Challenge = z.output<typeof CHALLENGE>;
