import { z } from 'zod';

/** Longer than any code, however it is written: what is typed is told apart from a code later. */
const USER_CODE = z.string().max(64);

/** The query of the page: the address that a device shows may carry its code (RFC 8628 §3.3.1). */
export const DEVICE_QUERY = z.object({ user_code: USER_CODE.optional() });

/** The form of the page. */
export const DEVICE_FORM = z.object({
  user_code: USER_CODE.min(1),
  /** The identity provider to sign in with where nobody is. */
  provider: z.string().max(32).optional(),
  /** Asks for the login with the security key instead. */
  sign_in: z.literal('key').optional(),
});

/** An approval or a refusal. */
export const DEVICE_DECISION = z.object({ user_code: USER_CODE.min(1) });

/** What {@link DEVICE_QUERY} makes of a query. */
export type DeviceQuery = z.output<typeof DEVICE_QUERY>;

/** What {@link DEVICE_FORM} makes of a form. */
export type DeviceForm = z.output<typeof DEVICE_FORM>;

/** What {@link DEVICE_DECISION} makes of a body. */
export type DeviceDecision = z.output<typeof DEVICE_DECISION>;
