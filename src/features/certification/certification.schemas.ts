import { z } from 'zod';

/** The form of both paths: the token, where it is not in the header. */
export const CERTIFICATION_FORM = z.object({ token: z.string().max(1024).optional() }).optional();

/** What {@link CERTIFICATION_FORM} makes of a form. */
export type CertificationForm = z.output<typeof CERTIFICATION_FORM>;
