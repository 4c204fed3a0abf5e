import { z } from 'zod';
import { VISIBLE_LINE, isVisibleLine } from '#platform/text/single-line.js';

/** The URL that opens after the ceremony. A URL of another service is ignored. */
const redirectTo = z
  .string()
  .max(2048)
  .optional()
  .describe('The path that opens after the ceremony.');

/** The body of `POST /login/webauthn/start`, which may be absent. */
export const START = z
  .object({ redirect_to: redirectTo })
  .prefault({})
  .describe('Where the browser goes on. The body may be left out.');
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
  state: z.string().max(8192).describe('The `state` of the start.'),
  // The code of the WebAuthn ceremony validates the credential.
  credential: z
    .unknown()
    .describe('The credential of the browser, by its `toJSON()` (WebAuthn Level 3 §5.1).'),
};

const keyName = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  .refine(isVisibleLine, VISIBLE_LINE)
  .describe('The name of the key, for the user.');

/** The body of `POST /login/webauthn/complete`. */
export const COMPLETE_LOGIN = z.object(completion);
export type CompleteLogin = z.output<typeof COMPLETE_LOGIN>;

/** The body of `POST /enroll/webauthn/complete`. */
export const COMPLETE_ENROLLMENT = z
  .object({ ...completion, name: keyName.optional() })
  .describe('The new credential of the browser.');
export type CompleteEnrollment = z.output<typeof COMPLETE_ENROLLMENT>;

/**
 * The body of `POST /enroll/webauthn/failed`: the name of the error that
 * `navigator.credentials.create()` threw.
 */
export const FAILED_ENROLLMENT = z.object({ state: completion.state, error: z.string().max(64) });
export type FailedEnrollment = z.output<typeof FAILED_ENROLLMENT>;

/** The body of `PATCH /v1/keys/{id}`. */
export const RENAME = z.object({ name: keyName }).describe('The new name of the key.');
export type Rename = z.output<typeof RENAME>;

/** The path parameter of a key. A text that is no UUID gets 404, and not 400. */
export const KEY_ID = z.object({ id: z.string().describe('The id of the key.') });

/**
 * The JSON form of the options for creating a credential (WebAuthn Level 3 §5.1.8), with the
 * members that this service sets.
 */
export const CREATION_OPTIONS = z
  .object({
    rp: z
      .object({
        id: z.string().describe('The domain of the service.'),
        name: z.string().describe('The name of the service.'),
      })
      .describe('The relying party.'),
    user: z
      .object({
        id: z.string().describe('The handle of the user, in base64url.'),
        name: z.string().describe('The address of the user.'),
        displayName: z.string().describe('The name of the user.'),
      })
      .describe('The user.'),
    challenge: z.string().describe('The challenge, in base64url.'),
    pubKeyCredParams: z
      .array(
        z.object({
          type: z.literal('public-key').describe('The type of the credential.'),
          alg: z.int().describe('The number of the algorithm (COSE).'),
        }),
      )
      .describe('The accepted algorithms.'),
    timeout: z.int().describe('The milliseconds of the ceremony.'),
    excludeCredentials: z
      .array(
        z.looseObject({
          id: z.string().describe('The id of the credential, in base64url.'),
          type: z.literal('public-key').describe('The type of the credential.'),
        }),
      )
      .describe('The keys that the user has already.'),
    authenticatorSelection: z
      .looseObject({
        userVerification: z.string().describe('Whether the key must verify its user.'),
      })
      .describe('What the key must be able to do.'),
    attestation: z.literal('direct').describe('The key must prove its model.'),
    hints: z.array(z.string()).describe('The kinds of authenticators that a browser offers.'),
  })
  .meta({
    id: 'CreationOptions',
    description: 'The options for creating a credential (WebAuthn Level 3 §5.1.8).',
  });
