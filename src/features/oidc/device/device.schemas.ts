import { z } from 'zod';

/**
 * The code that a user types. Any text of at most 64 characters is accepted by this schema, because
 * the look-up decides if it is a code.
 */
const USER_CODE = z.string().max(64);

/**
 * The query of the page `/device`: a device may show a URL that already contains its code (RFC 8628
 * §3.3.1).
 */
export const DEVICE_QUERY = z.object({ user_code: USER_CODE.optional() });

/** The form of the page `/device`, by which a user submits the code. */
export const DEVICE_FORM = z.object({
  user_code: USER_CODE.min(1),
  /** The identity provider that the user chose for the sign-in, if the browser has no session. */
  provider: z.string().max(32).optional(),
  /** Set if the user chose the login with the security key instead of an identity provider. */
  sign_in: z.literal('key').optional(),
});

/** The body of the request that approves or refuses a device. */
export const DEVICE_DECISION = z.object({ user_code: USER_CODE.min(1) });

/** The query of the page `/device` after validation, as the handler gets it. */
export type DeviceQuery = z.output<typeof DEVICE_QUERY>;

/** The form of the page `/device` after validation, as the handler gets it. */
export type DeviceForm = z.output<typeof DEVICE_FORM>;

/**
 * The body of the request that approves or refuses a device after validation, as the handler gets
 * it.
 */
export type DeviceDecision = z.output<typeof DEVICE_DECISION>;
