/**
 * The options of the OAuth library about user codes, which a user types to approve a device. A user
 * code has 8 letters and a dash. The letters are hard to confuse (RFC 8628 §6.1).
 */
export const USER_CODE = { charset: 'base-20', mask: '****-****' } as const;

/** The number of characters in the first half of a displayed user code, before the dash. */
const HALF = 4;

/**
 * Returns a user code in the form in which it is compared: capital letters and digits only. A user
 * may type it in small letters, with dashes or spaces.
 */
export function normalizeUserCode(typed: string): string {
  return typed.toUpperCase().replace(/[^A-Z0-9]/g, '');
}

/** Formats a user code for display, in two halves with a dash between them. */
export function formatUserCode(userCode: string): string {
  const normal = normalizeUserCode(userCode);
  return normal.length > HALF ? `${normal.slice(0, HALF)}-${normal.slice(HALF)}` : normal;
}
