import { z } from 'zod';

/** The injection token of the value of SVC_CERTIFICATION_TEST_TOKEN. */
export const CERTIFICATION_TOKEN = Symbol('certification test token');

/**
 * The form that completes or denies a login: the test token, which may be in the header instead,
 * and the login.
 */
export const CERTIFICATION_FORM = z
  .object({
    token: z.string().max(1024).optional(),
    /** The id of the waiting authorization request, which the login page shows. */
    interaction: z.string().max(64).optional(),
    /** The user code of a device that waits for approval. */
    user_code: z.string().max(64).optional(),
  })
  .optional();

/**
 * The form that completes or denies a login, after validation; undefined if the request has no
 * body.
 */
export type CertificationForm = z.output<typeof CERTIFICATION_FORM>;
