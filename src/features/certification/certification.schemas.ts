import { z } from 'zod';

/** The form of both paths: the token, where it is not in the header, and which login is meant. */
export const CERTIFICATION_FORM = z
  .object({
    token: z.string().max(1024).optional(),
    /** Of an authorization request: the login page shows it. */
    interaction: z.string().max(64).optional(),
    /** Of a device that waits. */
    user_code: z.string().max(64).optional(),
  })
  .optional();

/** What {@link CERTIFICATION_FORM} makes of a form. */
export type CertificationForm = z.output<typeof CERTIFICATION_FORM>;
