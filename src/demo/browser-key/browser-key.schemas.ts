import { z } from 'zod';
import type { CreateOptions, GetOptions } from '@svc/stand-ins/software-key';

const bytes = z.string().max(2048);
const userVerification = z.enum(['required', 'preferred', 'discouraged']).default('preferred');
const descriptors = z
  .array(z.object({ type: z.literal('public-key'), id: bytes }))
  .max(64)
  .default([]);

/** The part of `PublicKeyCredentialCreationOptionsJSON` that the software key reads. */
export const CREATE_OPTIONS: z.ZodType<CreateOptions> = z.object({
  rp: z.object({ id: z.string() }),
  user: z.object({ id: bytes, name: z.string().max(254).optional() }),
  challenge: bytes,
  pubKeyCredParams: z.array(z.object({ type: z.literal('public-key'), alg: z.int() })),
  excludeCredentials: descriptors,
  authenticatorSelection: z.object({ userVerification }).prefault({}),
});

/** The part of `PublicKeyCredentialRequestOptionsJSON` that the software key reads. */
export const GET_OPTIONS: z.ZodType<GetOptions> = z.object({
  challenge: bytes,
  rpId: z.string(),
  allowCredentials: descriptors,
  userVerification,
  account: bytes.optional(),
});
