import { z } from 'zod';
import { VISIBLE_LINE, isVisibleLine } from '#platform/text/single-line.js';

/** The address that opens after the ceremony. An address of another service is ignored. */
const redirectTo = z.string().max(2048).optional();

/** The body of `POST /login/webauthn/start`, which may be absent. */
export const START = z.object({ redirect_to: redirectTo }).prefault({});
export type Start = z.output<typeof START>;

/**
 * The body of `POST /enroll/webauthn/start`, which may be absent. An empty `pass` counts as no
 * pass.
 */
export const START_ENROLLMENT = z
  .object({
    redirect_to: redirectTo,
    pass: z
      .string()
      .max(256)
      .optional()
      .transform((text) => text?.trim() || undefined),
  })
  .prefault({});
export type StartEnrollment = z.output<typeof START_ENROLLMENT>;

const completion = {
  state: z.string().max(8192),
  /**
   * A RegistrationResponseJSON or AuthenticationResponseJSON of WebAuthn. The ceremony itself
   * validates it.
   */
  credential: z.unknown(),
};

const keyName = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  .refine(isVisibleLine, VISIBLE_LINE);

/** The body of `POST /login/webauthn/complete`. */
export const COMPLETE_LOGIN = z.object(completion);
export type CompleteLogin = z.output<typeof COMPLETE_LOGIN>;

/** The body of `POST /enroll/webauthn/complete`. */
export const COMPLETE_ENROLLMENT = z.object({ ...completion, name: keyName.optional() });
export type CompleteEnrollment = z.output<typeof COMPLETE_ENROLLMENT>;

/**
 * The body of `POST /enroll/webauthn/failed`: the name of the error that
 * `navigator.credentials.create()` threw.
 */
export const FAILED_ENROLLMENT = z.object({ state: completion.state, error: z.string().max(64) });
export type FailedEnrollment = z.output<typeof FAILED_ENROLLMENT>;

/** The body of `PATCH /v1/keys/{id}`. */
export const RENAME = z.object({ name: keyName });
export type Rename = z.output<typeof RENAME>;

/** The path parameter of a key. A text that is no UUID gets 404, and not 400. */
export const KEY_ID = z.object({ id: z.string() });

/**
 * The JSON form of the options for creating a credential (WebAuthn Level 3 §5.1.8), with the
 * members that this service sets.
 */
export const CREATION_OPTIONS = z
  .object({
    rp: z.object({ id: z.string(), name: z.string() }),
    user: z.object({ id: z.string(), name: z.string(), displayName: z.string() }),
    challenge: z.string(),
    pubKeyCredParams: z.array(z.object({ type: z.literal('public-key'), alg: z.int() })),
    timeout: z.int(),
    excludeCredentials: z.array(z.looseObject({ id: z.string(), type: z.literal('public-key') })),
    authenticatorSelection: z.looseObject({ userVerification: z.string() }),
    attestation: z.literal('direct'),
    hints: z.array(z.string()),
  })
  .meta({ id: 'CreationOptions' });
